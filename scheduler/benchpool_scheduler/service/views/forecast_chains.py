"""Jobs that wait for other jobs or for arrays, as input of forecasts.

The tasks of an array that have not begun are no jobs yet. If a job waits for the whole array, they
enter the forecast as jobs that follow each other. As many run in parallel as the array allows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from benchpool_scheduler.core.forecast.rollout import Dependent
from benchpool_scheduler.core.forecast.run_times import Expectation
from benchpool_scheduler.core.lifecycle.arrays import ArrayStanding
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.core.model import JobFacts, JobId, ProjectName, Snapshot
from benchpool_scheduler.service.cluster_state import snapshots
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observations import Observations
from benchpool_scheduler.store.records import JobRecord


@dataclass(frozen=True, slots=True)
class ForecastChain:
    """Jobs that join the queue when others have ended.

    Attributes:
        dependents: These jobs, and the tasks of arrays that have not begun.
        expected: Expected run times of such tasks, where known.
    """

    dependents: tuple[Dependent, ...]
    expected: Mapping[JobId, Expectation]


def chain_of(
    ledger: Ledger,
    seen: Observations,
    pool: Snapshot,
    now: float,
    more: tuple[JobFacts, JobRecord] | None = None,
) -> ForecastChain:
    """Return the jobs that wait for others to end, without those whose project is not in the pool.

    Args:
        more: A job that is not submitted yet and waits for others too.
    """
    homes = snapshots.homes(seen, ledger.counters.projects())
    there = {project.name for project in pool.projects}
    waiting = [
        (facts, record)
        for name in ledger.counters.gated
        if (record := ledger.job(name)) is not None and record.state is JobState.QUEUED
        if homes.get(record.project) in there
        for facts in snapshots.facts_of(ledger, record, homes, now, seen)
    ]
    waiting += [] if more is None else [more]
    arrays = {
        it.job: array
        for _, record in waiting
        for it in record.awaits
        if it.tasks and it.outcome is None and (array := ledger.arrays.of(it.job)) is not None
    }
    to_come: list[Dependent] = []
    expected: dict[JobId, Expectation] = {}
    for array in arrays.values():
        first = _open_job(ledger, array)
        if first is not None and homes.get(first.project) in there:
            found = _to_come(ledger, array, first, homes, now, seen)
            to_come += found
            expected |= _expectations(ledger, first, found)
    dependents = (Dependent(facts, _left(record, arrays)) for facts, record in waiting)
    return ForecastChain((*to_come, *dependents), expected)


def task_id(array: str, number: int) -> JobId:
    """Return the core's ID of a task that has not begun.

    Args:
        number: From 0, in the order in which the tasks begin.
    """
    return JobId(f"{array}/task-{number}")


def _left(record: JobRecord, arrays: Mapping[str, ArrayStanding]) -> frozenset[JobId]:
    """Return the jobs and tasks that must end before a job joins the queue."""
    left: set[JobId] = set()
    for it in record.awaits:
        array = arrays.get(it.job)
        if array is None:
            left |= {JobId(it.job)} if it.outcome is None else set()
        else:
            left |= {JobId(task.job) for task in array.open}
            begun = len(array.tasks)
            left |= {task_id(array.id, begun + more) for more in range(array.unbegun)}
    return frozenset(left)


def _open_job(ledger: Ledger, array: ArrayStanding) -> JobRecord | None:
    jobs = (ledger.job(task.job) for task in array.open)
    return next((job for job in jobs if job is not None), None)


def _to_come(
    ledger: Ledger,
    array: ArrayStanding,
    like: JobRecord,
    homes: Mapping[str, ProjectName],
    now: float,
    seen: Observations,
) -> Sequence[Dependent]:
    """Return the tasks that have not begun. Each begins when an earlier one has ended."""
    record = structs.replace(
        like,
        id=array.id,
        state=JobState.QUEUED,
        attempt=0,
        started=None,
        queued_since=now,
        stop_request=None,
        note=None,
        promised=(),
        progress=None,
        retried=(),
        awaits=(),
        freed=None,
    )
    (facts,) = snapshots.facts_of(ledger, record, homes, now, seen)
    before = deque(JobId(task.job) for task in array.open)
    found = []
    for number in range(len(array.tasks), len(array.tasks) + array.unbegun):
        task = replace(facts, id=task_id(array.id, number))
        found.append(Dependent(task, frozenset({before.popleft()})))
        before.append(task.id)
    return found


def _expectations(
    ledger: Ledger, like: JobRecord, tasks: Collection[Dependent]
) -> dict[JobId, Expectation]:
    known = ledger.runtime_estimator.expectation(like, (), None)
    return {} if known is None else {it.job.id: known for it in tasks}
