"""Explanations of longer waits and more pauses in a what-if are given, and are true."""

from __future__ import annotations

import random

from benchpool_scheduler.contract import WorkloadWhatIf
from benchpool_scheduler.core.model import GpuId, Node, NodeName, Policy, Project, ProjectName
from benchpool_scheduler.service.administration import workloads
from benchpool_scheduler.simulation.replay.engine import Costs
from benchpool_scheduler.simulation.replay.trace import TraceJob
from benchpool_scheduler.simulation.whatif import Replayed, Side, replay_both
from benchpool_scheduler.simulation.whatif_causes import PauseKind

HOUR = 3600.0
COSTS = Costs(restart_s=60, lost_progress_s=600)


def both(jobs: list[TraceJob], gpus: int, more: int, **quotas: int) -> Replayed:
    """Replay jobs in a pool with one machine of ``gpus`` GPUs, and in a pool with more."""
    projects = tuple(Project(ProjectName(name), quota=gpu) for name, gpu in quotas.items())
    before, after = (Side((machine(number),), projects, Policy()) for number in (gpus, gpus + more))
    return replay_both(jobs, before, after, COSTS)


def machine(gpus: int) -> Node:
    return Node(NodeName("n"), tuple(GpuId(str(at)) for at in range(gpus)))


def job(submit_h: float, hours: float, gpus: int, name: str) -> TraceJob:
    return TraceJob(2, submit_h * HOUR, hours * HOUR, gpus, name)


def test_reclaimed_new_gpus_explain_more_pauses() -> None:
    jobs = [
        *(job(0, 10, 4, "speech"), job(0, 10, 4, "lab")),
        job(0.5, 5, 4, "guests"),  # waits on eight GPUs; runs on twelve until lab claims
        job(1, 5, 4, "lab"),
    ]
    found = both(jobs, 8, 4, speech=4, lab=4, guests=0)
    assert (found.pauses.before, found.pauses.after) == (0, 1)
    assert found.pauses.kinds == {PauseKind.OF_WAITING: 1}
    why = workloads.answer(found).why
    assert why["preemptions_per_job"] == (
        "Of 1 pause, 1 stops a job that would still wait without the change."
    )
    assert why["lost_gpu_h"] == "1 pause instead of 0."
    assert "mean_wait_h" not in why


def test_short_job_behind_large_job_explains_longer_wait() -> None:
    jobs = [job(0, 10, 3, "p"), job(1, 5, 4, "p"), job(2, 0.5, 1, "p")]
    why = workloads.answer(both(jobs, 4, 3, p=7)).why
    assert why == {
        "short_job_wait_min": (
            "1 of 1 job waits longer: 1 starts later, behind jobs that run sooner."
        )
    }


def test_unchanged_pool_has_no_explanation() -> None:
    jobs = [job(0, 10, 4, "p"), job(0, 10, 4, "p")]
    answer = workloads.answer(both(jobs, 4, 4, p=4))
    assert answer.why == {}
    assert [it.why for it in answer.projects] == [""]


def drawn(seed: int) -> Replayed:
    """Replay a random workload of two or three projects with one to four more GPUs."""
    draw = random.Random(seed)
    gpus, names = draw.choice([4, 6, 8, 12]), ["a", "b", "c"][: draw.choice([2, 3])]
    quotas = {name: draw.randint(0, gpus // len(names)) for name in names}
    at_h, jobs = 0.0, []
    for _ in range(draw.randint(10, 40)):
        at_h += draw.choice([0, 1 / 60, 1 / 6, 0.5, 1])
        size, hours = draw.choice([1, 1, 1, 2, 2, 4]), draw.choice([1 / 6, 0.5, 1, 2, 5.5])
        jobs.append(job(at_h, hours, size, draw.choice(names)))
    return both(jobs, gpus, draw.choice([1, 2, 4]), **quotas)


def worse(answer: WorkloadWhatIf) -> set[str]:
    keys = ("mean_wait_h", "p95_wait_h", "mean_jct_h", "short_job_wait_min")
    return {
        key
        for key in (*keys, "preemptions_per_job", "lost_gpu_h")
        if getattr(answer.after, key) > getattr(answer.before, key)
    }


def test_every_worse_figure_has_exactly_one_reason() -> None:
    seen: set[str] = set()
    for seed in range(60):
        found = drawn(seed)
        answer = workloads.answer(found)
        assert set(answer.why) == worse(answer)
        for one in answer.projects:
            assert bool(one.why) == (one.after.mean_wait_h > one.before.mean_wait_h)
        for causes in (found.waits, found.short_waits, *(it.causes for it in found.projects)):
            assert causes.paused + causes.later <= causes.longer <= causes.jobs
            assert causes.passed <= causes.later
        assert sum(found.pauses.kinds.values()) == found.pauses.after
        seen |= set(answer.why)
    assert {"preemptions_per_job", "lost_gpu_h", "short_job_wait_min"} <= seen


def test_short_job_preempting_old_run_is_explained() -> None:
    jobs = [job(0, 10, 3, "p"), job(1, 5, 4, "p"), job(2, 0.5, 1, "p")]
    found = both(jobs, 4, 3, p=4)  # beyond four GPUs old runs are preempted
    assert found.pauses.kinds == {PauseKind.FOR_SERVED: 1}
    sentence = "Of 1 pause, 1 is for a job that would have its GPUs by then without the change."
    assert workloads.answer(found).why["preemptions_per_job"] == sentence


def test_more_frequent_pauses_explain_longer_project_wait() -> None:
    # On eight GPUs no job can be preempted for the eight of lab; on twelve, four idle GPUs help.
    jobs = [job(0, 10, 4, "speech"), job(0, 10, 4, "guests"), job(1, 1, 8, "lab")]
    found = both(jobs, 8, 4, speech=4, lab=8, guests=0)
    assert found.pauses.kinds == {PauseKind.FOR_WAITING: 1}
    answer = workloads.answer(found)
    sentence = "Of 1 pause, 1 is for a job that would still wait without the change."
    assert answer.why["preemptions_per_job"] == sentence
    (guests,) = [it for it in answer.projects if it.name == "guests"]
    assert guests.why == "1 of 1 job waits longer: 1 is paused more often."


def test_pause_on_both_sides_is_attributed_to_served_claimant() -> None:
    jobs = [job(0, 10, 4, "guests"), job(1, 1, 4, "lab")]
    assert both(jobs, 4, 0, lab=4, guests=0).pauses.kinds == {PauseKind.FOR_SERVED: 1}
