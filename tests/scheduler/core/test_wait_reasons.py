"""Every waiting job gets a true reason, with numbers and valid advice (R22)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchpool_scheduler.core.lifecycle.reason_codes import OF_PASSES
from benchpool_scheduler.core.model import (
    JobFacts,
    NodeName,
    Policy,
    ReasonCode,
    Snapshot,
    Start,
    WaitReason,
    Worker,
)
from benchpool_scheduler.core.plan import decide
from benchpool_scheduler.core.whatif.preview import could_ever_run
from benchpool_scheduler.simulation.passes import after
from benchpool_support.boxes import box, leaving, node, pool_of, project, queued, running
from benchpool_support.examples import examples
from benchpool_support.snapshots import busy_snapshots, snapshots

TRIO = [project("susan", 2), project("joe", 2), project("jemma", 2)]


def reason_of(pool: Snapshot, job: str) -> WaitReason:
    return next(reason for name, reason in decide(pool).reasons.items() if name == job)


def test_job_beyond_fair_share_shows_project_holdings() -> None:
    pool = box(
        6,
        TRIO,
        [
            running("a", "susan", 4),
            running("b", "joe", 1),
            queued("c", "susan", 2, priority=50),
        ],
    )
    reason = reason_of(pool, "c")
    assert reason.code is ReasonCode.FAIR_SHARE_REACHED
    assert reason.text == (
        "waits for 2 GPUs: 1 of 6 is free; project susan holds 4, more than the 2 guaranteed, "
        "and with 2 more it would exceed its fair share of 5"
    )
    assert reason.remedy == "it would start now with 1 GPU"
    assert reason.numbers["would_start_with"] == 1


def on(job: JobFacts, *nodes: str) -> JobFacts:
    return replace(job, held=tuple(Worker(NodeName(name), ()) for name in nodes))


def test_self_harming_claim_waits_with_reason() -> None:
    train = running("train", "vision", workers=2, priority=80)
    shrinks = running("elastic", "speech", workers=3, min_workers=1, priority=60)
    pool = pool_of(
        [node("n0", 2, gpu_model="V100"), node("n1", 3, gpu_model="A100")],
        [project("vision", 0, limit=3, weight=1.0, priority=1), project("speech", 2, weight=2.0)],
        [
            on(train, "n1", "n0"),
            queued("probe", "vision", gpu_models=("A100",), checkpoints=False),
            on(shrinks, "n0", "n1", "n1"),
            queued("large", "speech", 2, priority=70),
        ],
    )
    reason = reason_of(pool, "probe")
    assert reason.code is ReasonCode.POOL_FULL
    assert reason.text == (
        "waits for 1 GPU: 0 of 5 are free; preempting others would stop a job of its project that "
        "ranks above it"
    )
    assert reason.remedy == "it starts by itself when enough GPUs become free"


def test_job_beyond_share_shows_start_and_claimable_gpus() -> None:
    full = [running(f"{name}{i}", name) for name in "ab" for i in range(4)]
    projects = [project("a", 2), project("b", 2), project("c", 4)]
    pool = box(8, projects, [*full, queued("big", "c", 8)])
    reason = reason_of(pool, "big")
    assert reason.code is ReasonCode.FAIR_SHARE_REACHED
    assert reason.remedy == (
        "it starts only when 8 are free at once, when other jobs need fewer; with 4 GPUs or fewer "
        "it may reclaim GPUs within its project's share"
    )
    assert reason.numbers["may_claim"] == 4
    claim = box(8, projects, [*full, queued("big", "c", 4)])
    assert any(isinstance(it, Start) and it.job == "big" for it in decide(claim).commands)
    gang = reason_of(box(8, projects, [*full, queued("big", "c", 3, workers=2)]), "big")
    assert "with 1 worker it may reclaim" in gang.remedy
    assert gang.numbers["may_claim"] == 3


@pytest.mark.parametrize(
    ("memory", "text"),
    [
        (
            False,
            "needs 1.5 CPUs on the node of its GPUs; n has 6 GPUs and 1 CPUs free, a holds 14 and "
            "b holds 1; 5 GPUs that are guaranteed to b stand idle meanwhile",
        ),
        (
            True,
            "needs 1 GiB of memory on the node of its GPUs; n has 6 GPUs and 0 GiB of memory free, "
            "a holds 64; 5 GPUs that are guaranteed to b stand idle meanwhile",
        ),
    ],
)
def test_job_beside_free_gpus_shows_cpu_or_memory_holders(memory: bool, text: str) -> None:
    small = replace(node("m", 1), cpus=0.5, memory_gib=0.5)
    large = replace(node("n", 8), cpus=16.0, memory_gib=64.0)
    asks: dict[str, Any] = {"memory_gib": 1.0} if memory else {"cpus": 1.5}
    holds: dict[str, Any] = {"memory_gib": 64.0} if memory else {}
    pool = pool_of(
        [small, large],
        [project("a", 1), project("b", 6)],
        [
            running("hog", "a", on="n", cpus=14.0, **holds),
            running("own", "b", on="n", cpus=1.0),
            queued("w", "b", **asks),
        ],
    )
    reason = reason_of(pool, "w")
    assert reason.code is ReasonCode.POOL_FULL
    assert reason.text == text
    assert reason.numbers["guaranteed_idle"] == 5
    assert reason.numbers["node"] == "n"


@pytest.mark.parametrize(
    ("pool", "code", "text"),
    [
        (
            box(4, [project("a", 2, limit=2)], [running("r", "a", 2), queued("w", "a")]),
            ReasonCode.PROJECT_LIMIT,
            "asks for 1 GPU; project a holds 2 of at most 2",
        ),
        (
            box(
                4,
                [project("dept", 2, limit=2), project("a", 2, parent="dept")],
                [running("r", "a", 2), queued("w", "a")],
            ),
            ReasonCode.PROJECT_LIMIT,
            "asks for 1 GPU; project dept holds 2 of at most 2",
        ),
        (
            box(4, [replace(project("a", 0, limit=0), gone=True)], [queued("w", "a")]),
            ReasonCode.PROJECT_LIMIT,
            "cannot start: project a was removed or divided and starts no more jobs",
        ),
        (
            box(4, [project("a", 1)], [queued("w", "a", 2, preemptible=False)]),
            ReasonCode.NON_PREEMPTIBLE_OVER_QUOTA,
            "is non-preemptible and asks for 2 GPUs; such jobs of project a hold 0 of 1 guaranteed",
        ),
        (
            box(4, [project("a", 1)], [queued("w", "a", 5)]),
            ReasonCode.LARGER_THAN_NODE,
            "asks for 5 GPUs on one node; the largest node has 4 for training",
        ),
        (
            box(4, [project("a", 1)], [queued("w", "a", 2, workers=3)]),
            ReasonCode.LARGER_THAN_POOL,
            "asks for 3 workers of 2 GPUs at once; the whole pool has room for 2",
        ),
        (
            pool_of(
                [node("box", 4, gpu_model="A100")],
                [project("a", 1)],
                [queued("w", "a", gpu_models=("H100",))],
            ),
            ReasonCode.NO_SUCH_MODEL,
            "asks for the GPU model H100; the pool has A100",
        ),
        (
            pool_of([node("box", 4, ready=False)], [project("a", 1)], [queued("w", "a")]),
            ReasonCode.NO_NODE_READY,
            "waits for 1 GPU: 1 node of the pool is not ready, and the others are too small",
        ),
        (
            pool_of(
                [node("n0", 2), node("n1", 2)],
                [project("a", 4)],
                [
                    running("x", "a", on="n0", preemptible=False),
                    running("y", "a", on="n1", preemptible=False),
                    queued("w", "a", 2),
                ],
            ),
            ReasonCode.FRAGMENTED,
            "needs 2 GPUs on one node; 2 are free, at most 1 of them on one node",
        ),
        (
            pool_of(
                [node("n0", 3), node("n1", 2)],
                [project("a", 5)],
                [running("x", "a", on="n1"), queued("w", "a", 2, workers=2)],
            ),
            ReasonCode.GANG_INCOMPLETE,
            "needs 2 workers of 2 GPUs at once; 1 would fit now",
        ),
        (
            box(
                2,
                [project("a", 1), project("b", 1)],
                [running("r", "a", 2, ran_s=20.0), queued("w", "b")],
                Policy(min_runtime_s=60.0),
            ),
            ReasonCode.VICTIMS_PROTECTED,
            "waits for 1 GPU: 0 of 2 are free; the jobs that it would preempt are protected "
            "for another 40 s",
        ),
        (
            box(1, [project("a", 1), project("b", 1)], [running("r", "a"), queued("w", "b")]),
            ReasonCode.POOL_FULL,
            "waits for 1 GPU: 0 of 1 are free; the jobs that it may preempt would not free enough",
        ),
        (
            box(2, [project("a", 0), project("b", 2)], [leaving("r", "a", 2), queued("w", "b")]),
            ReasonCode.WAITING_FOR_VICTIMS,
            "1 GPU is promised to it; 1 job is saving and stopping, which takes at most 30 s",
        ),
        (
            box(
                3,
                [project("a", 0, weight=0), project("b", 3)],
                [running("r", "a", 2), queued("first", "b", 3), queued("w", "a", 1)],
            ),
            ReasonCode.RESERVED_FOR_OTHERS,
            "waits for 1 GPU: 0 of 3 are free, and 1 more is promised to jobs that go first",
        ),
        (
            box(
                3,
                [project("a", 1), project("b", 1)],
                [running("r", "b", 2, ran_s=8000.0), running("s", "a"), queued("w", "a")],
            ),
            ReasonCode.CLAIM_DELAYED,
            "waits for 1 GPU: 0 of 3 are free; long-running jobs are preempted for it in 45 s",
        ),
        (
            box(
                3,
                [project("a", 1), project("b", 1)],
                [running("r", "b", 2), running("s", "a"), queued("w", "a", done_s=9000.0)],
            ),
            ReasonCode.LONG_RUNNING,
            "waits for 1 GPU: 0 of 3 are free; it has run for 2 h 30 min, so it preempts no jobs "
            "beyond the guaranteed quota",
        ),
        (
            box(3, [project("a", 1)], [queued("w", "a", only=frozenset())]),
            ReasonCode.NODES_EXCLUDED,
            "waits for 1 GPU: 0 nodes of 1 may be used, because its volume is not available on "
            "the others, or they did not accept it",
        ),
        (
            pool_of(
                [node("n", 3, ready=False, closed="drains (new disk)")],
                [project("a", 1)],
                [queued("w", "a")],
            ),
            ReasonCode.NODES_CLOSED,
            "waits for 1 GPU on a node that accepts jobs: n drains (new disk)",
        ),
    ],
    ids=lambda value: value.value if isinstance(value, ReasonCode) else "",
)
def test_reason_names_binding_constraint(pool: Snapshot, code: ReasonCode, text: str) -> None:
    reason = reason_of(pool, "w")
    assert (reason.code, reason.text) == (code, text)
    assert reason.remedy


def test_reason_list_is_complete() -> None:
    marks = test_reason_names_binding_constraint.pytestmark[0].args[1]  # type: ignore[attr-defined]
    elsewhere = {ReasonCode.FAIR_SHARE_REACHED, ReasonCode.BUDGET_USED_UP}
    named = {code for _, code, _ in marks} | elsewhere
    assert named == OF_PASSES


many = settings(max_examples=examples(150), suppress_health_check=list(HealthCheck))


@many
@given(st.one_of(snapshots(), busy_snapshots()))
def test_job_starts_immediately_with_advised_change(pool: Snapshot) -> None:
    plan = decide(pool)
    done = after(pool, plan)
    if after(done, decide(done)) != done:
        return  # the pool has not settled, and the advice is for now
    for name, reason in decide(done).reasons.items():
        advice: list[dict[str, Any]] = []
        if (smaller := reason.numbers.get("would_start_with")) is not None:
            advice.append({"gpus": int(smaller)})
        if (models := reason.numbers.get("would_start_on")) is not None:
            advice.append({"gpu_models": tuple(str(models).split(", "))})
        for asked in advice:
            jobs = tuple(
                replace(job, spec=job.spec.changed(**asked)) if job.id == name else job
                for job in done.jobs
            )
            again = decide(replace(done, jobs=jobs))
            assert any(isinstance(c, Start) and c.job == name for c in again.commands)


NEVER = {ReasonCode.LARGER_THAN_NODE, ReasonCode.LARGER_THAN_POOL, ReasonCode.NO_SUCH_MODEL}


@many
@given(st.one_of(snapshots(), busy_snapshots()))
def test_only_impossible_job_is_reported_as_too_large(pool: Snapshot) -> None:
    for name, reason in decide(pool).reasons.items():
        job = next(job for job in pool.jobs if job.id == name)
        if reason.code in NEVER:
            assert not could_ever_run(pool, job)
