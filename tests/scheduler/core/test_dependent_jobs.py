"""Dependent jobs: when they join the queue, and their estimated starts."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.core.forecast.forecast import forecast
from benchpool_scheduler.core.forecast.rollout import Dependent
from benchpool_scheduler.core.forecast.run_times import Expectation
from benchpool_scheduler.core.lifecycle.dependencies import DependencyVerdict, verdict
from benchpool_scheduler.core.lifecycle.states import TERMINAL, JobState
from benchpool_scheduler.core.model import (
    Activity,
    GpuId,
    JobFacts,
    JobId,
    Node,
    NodeName,
    Project,
    ProjectName,
    Snapshot,
    Worker,
)

ends = st.lists(st.sampled_from([None, *sorted(TERMINAL)]), max_size=6)
VISION, BOX = ProjectName("vision"), NodeName("box")


@given(ends, st.booleans(), st.randoms())
def test_dependency_result_does_not_depend_on_order(
    outcomes: list[JobState | None], any_end: bool, random: Random
) -> None:
    mixed = list(outcomes)
    random.shuffle(mixed)
    assert verdict(mixed, any_end=any_end) is verdict(outcomes, any_end=any_end)


@given(ends, st.sampled_from(sorted(TERMINAL)), st.booleans())
def test_decided_dependency_stays_decided(
    outcomes: list[JobState | None], end: JobState, any_end: bool
) -> None:
    before = verdict(outcomes, any_end=any_end)
    if None in outcomes:
        outcomes[outcomes.index(None)] = end
    after = verdict(outcomes, any_end=any_end)
    assert before is DependencyVerdict.WAITS or after is before


@given(ends)
def test_dependent_job_is_queued_when_all_dependencies_match(
    outcomes: list[JobState | None],
) -> None:
    ended = all(it is not None for it in outcomes)
    assert (verdict(outcomes, any_end=True) is DependencyVerdict.FREE) == ended
    well = all(it is JobState.SUCCEEDED for it in outcomes)
    assert (verdict(outcomes) is DependencyVerdict.FREE) == well
    bad = any(it in TERMINAL and it is not JobState.SUCCEEDED for it in outcomes)
    assert (verdict(outcomes) is DependencyVerdict.NEVER) == bad
    assert verdict(outcomes, any_end=True) is not DependencyVerdict.NEVER


def pool(gpus: int) -> Snapshot:
    devices = tuple(GpuId(f"gpu-{number}") for number in range(gpus))
    running = JobFacts(
        JobId("a"), VISION, activity=Activity.RUNNING, held=(Worker(BOX, devices[:1]),), ran_s=60.0
    )
    return Snapshot((Node(BOX, devices),), (Project(VISION, quota=gpus),), (running,))


def exactly(seconds: float) -> Expectation:
    return Expectation(seconds, seconds, seconds)


def test_estimate_follows_chain_of_jobs() -> None:
    dependents = (
        Dependent(JobFacts(JobId("b"), VISION), frozenset({JobId("a")})),
        Dependent(JobFacts(JobId("c"), VISION), frozenset({JobId("a"), JobId("b")})),
    )
    expected = {JobId("a"): exactly(100.0), JobId("b"): exactly(600.0), JobId("c"): exactly(1.0)}
    found = forecast(pool(4), expected, dependents=dependents)
    assert (found[JobId("b")].likely_s, found[JobId("c")].likely_s) == (40.0, 640.0)
    assert found[JobId("c")].waits_for == "b"
    assert found[JobId("c")].earliest_s == found[JobId("c")].latest_s == 640.0


def test_estimate_is_absent_with_unknown_dependency_end() -> None:
    waits = Dependent(JobFacts(JobId("b"), VISION), frozenset({JobId("a")}))
    assert forecast(pool(2), {}, dependents=(waits,)) == {}


def test_dependent_job_takes_no_earlier_queue_position() -> None:
    waits = Dependent(JobFacts(JobId("b"), VISION), frozenset({JobId("a")}))
    full = pool(1)
    queued = JobFacts(JobId("q"), VISION)
    with_line = Snapshot(full.nodes, full.projects, (*full.jobs, queued))
    expected = {JobId("a"): exactly(100.0), JobId("q"): exactly(50.0)}
    found = forecast(with_line, expected, dependents=(waits,))
    assert (found[JobId("q")].likely_s, found[JobId("b")].likely_s) == (40.0, 90.0)
