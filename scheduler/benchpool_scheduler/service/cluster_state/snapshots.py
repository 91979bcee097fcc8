"""The pool at an instant, in the core's types."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import TypedDict

from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.lifecycle import states
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.core.model import (
    Activity,
    GpuId,
    JobFacts,
    JobId,
    NodeName,
    Project,
    ProjectName,
    Snapshot,
    Worker,
)
from benchpool_scheduler.service.cluster_state import node_inputs, retry_bars
from benchpool_scheduler.service.cluster_state.node_bars import node_bars, room_bar
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.lifecycle import transitions
from benchpool_scheduler.service.observed import closings
from benchpool_scheduler.service.observed.inventory import node_of, place_of
from benchpool_scheduler.service.observed.observations import Observations
from benchpool_scheduler.store.records import AttemptRecord, JobRecord, Place, WorkerRecord

HOUR_S, DAY_S = 3600.0, 86_400.0
_LEAVING = " (leaving)"


def snapshot(ledger: Ledger, seen: Observations, now: float) -> Snapshot:
    """Return the input of a pass, built from the records: the reference for ``StateCache``.

    All times of its jobs are as of ``now``.
    """
    home = homes(seen, ledger.counters.projects())
    return Snapshot(
        nodes=node_inputs.nodes(node_inputs.node_inputs(ledger, seen)),
        projects=projects(seen, home.values()),
        jobs=tuple(
            at(job, now)
            for record in in_line(ledger)
            for job in jobs_of(ledger, record, home, now, seen)
        ),
        policy=seen.configuration.policy,
        users=seen.usage.users,
        topology=levels(seen),
        now_s=now,
    )


def in_line(ledger: Ledger) -> list[JobRecord]:
    """Return the jobs that have not ended, by their time in the queue."""
    return sorted(ledger.live(), key=lambda record: age_of(ledger, record))


def age_of(ledger: Ledger, record: JobRecord) -> int:
    """Return the rank of a job by age, the oldest lowest. Ranks are unique (R11).

    It follows the submission. A job that waited for other jobs ranks after all jobs submitted
    before it joined the queue.
    """
    return _place(record.in_line_since, ledger.job_index.numbers[record.id])


def rank_of(ledger: Ledger, job: JobId) -> int:
    """Return the rank of a job among all. Its leaving workers come directly after it.

    Errors: KeyError.
    """
    record = ledger.job(job)
    if record is not None:
        return 2 * age_of(ledger, record)
    record = ledger.job(job_of_leaving(job))
    if record is None:
        raise KeyError(job)
    return 2 * age_of(ledger, record) + 1


def by_rank(ledger: Ledger, jobs: Iterable[JobFacts]) -> tuple[JobFacts, ...]:
    """Return jobs by rank, without those whose records have been removed meanwhile."""
    found: list[tuple[int, JobFacts]] = []
    for job in jobs:
        with contextlib.suppress(KeyError):
            found.append((rank_of(ledger, job.id), job))
    return tuple(job for _, job in sorted(found, key=itemgetter(0)))


def _place(since: float, number: int) -> int:
    """Return a time and a number as one number that sorts by both.

    >>> _place(1.0, 7) < _place(1.0, 8) < _place(1.5, 2)
    True
    """
    return (int(since * 1e6) << 40) + number


def levels(seen: Observations) -> tuple[str, ...]:
    """Return the topology levels, the widest first (R12)."""
    return tuple(level.name for level in seen.configuration.topology)


# --------------------------------------------------------------------------- projects


def homes(seen: Observations, names: Iterable[str]) -> Mapping[str, ProjectName]:
    """Return the snapshot's project for the jobs of each project.

    Jobs may name a project that the configuration no longer has, or that has become a parent. Such
    jobs are in a project of their own with a limit of 0: they are preempted and do not start.
    """
    settings = seen.configuration
    found: dict[str, ProjectName] = {}
    for name in names:
        divided = settings.is_parent(name)
        found[name] = ProjectName(f"{name} (before it was divided)" if divided else name)
    return found


def projects(seen: Observations, names: Iterable[ProjectName]) -> tuple[Project, ...]:
    """Return the configured projects, then the projects in ``names`` that are not configured."""
    known = [settings.project for settings in seen.configuration.projects]
    if used := seen.usage.projects:
        known = [replace(p, used_gpu_s=used.get(p.name, p.used_gpu_s)) for p in known]
    if seen.hours.standing.weights:
        known = [seen.hours.standing.weigh(project) for project in known]
    missing = dict.fromkeys(sorted(names))
    for project in known:
        missing.pop(project.name, None)
    gone = (Project(name=name, quota=0, limit=0, weight=0.0, gone=True) for name in missing)
    return (*known, *gone)


# --------------------------------------------------------------------------- jobs


def jobs_of(
    ledger: Ledger,
    record: JobRecord,
    home: Mapping[str, ProjectName],
    now: float,
    seen: Observations,
) -> tuple[JobFacts, ...]:
    """Return a job as the core sees it; nothing if it has ended, is gated, or its user paused it.

    A gated job waits for other jobs. A job that names no model gets no slices. A job that names no
    CPUs or memory requests the pool's default. Released workers hold their GPUs until they are
    gone: to the core they are a separate, leaving job, so that promises on their GPUs remain valid
    (R20).

    Its times are as of instants that do not depend on ``now``. Only ``preemptions_last_hour``,
    ``preemptions_last_day`` and ``barred`` depend on it: see ``expiries``.
    """
    if not record.live or record.state is JobState.PAUSED or record.gated:
        return ()
    return facts_of(ledger, record, home, now, seen)


def facts_of(
    ledger: Ledger,
    record: JobRecord,
    home: Mapping[str, ProjectName],
    now: float,
    seen: Observations,
) -> tuple[JobFacts, ...]:
    """Return the same as ``jobs_of`` for a job in the queue or not."""
    attempt = ledger.attempt(record.id, record.attempt)
    held = attempt.live_workers if attempt and record.state in states.HOLDS_GPUS else ()
    staying = [w for w in held if not w.leaving]
    leaving = [w for w in held if w.leaving]
    asked = _asked(record, attempt, staying, leaving)
    spec = seen.default_amounts.held(asked, attempt if held else None)
    slices = seen.inventory.slices
    learned = ledger.runtime_estimator.facts(record, ledger.attempts(record.id))
    ago_s = [now - it.at for it in ledger.preemptions(record.id)]
    job = JobFacts(
        id=JobId(record.id),
        project=home[record.project],
        spec=spec,
        user=record.user,
        activity=_activity(record, attempt),
        held=_workers(staying),
        is_nominated=bool(record.promised),
        nominated=workers_at(record.promised),
        preemptions_last_hour=sum(ago < HOUR_S for ago in ago_s),
        preemptions_last_day=sum(ago < DAY_S for ago in ago_s),
        only=frozenset() if out_until(ledger, record) > now else None,
        barred=barred(
            record,
            slices,
            (
                *(it for it, end in barred_of(ledger, record) if end > now),
                *avoided_of(record, seen, now),
                *closed_to(record.spec, seen, now),
            ),
        ),
        blocked=seen.hours.blocks(record, seen.configuration),
        behind=record.user in seen.hours.standing.behind,
        begun=bool(record.attempt),
        expected_run_s=learned.expected_run_s,
        done_s=learned.done_s,
        **_times(record, attempt if held else None, now),
    )
    if not leaving:
        return (job,)
    # If no worker stays, the job is over once the leaving ones have gone.
    return (job, _those_leaving(job, leaving)) if staying else (_those_leaving(job, leaving),)


def leaving_id(job: str) -> JobId:
    """Return the core's ID for the workers that a job has released."""
    return JobId(job + _LEAVING)


def job_of_leaving(name: JobId) -> str:
    """Return the job whose released workers have this ID in the core.

    >>> job_of_leaving(leaving_id("k3"))
    'k3'
    """
    return name.removesuffix(_LEAVING)


def _those_leaving(job: JobFacts, leaving: Sequence[WorkerRecord]) -> JobFacts:
    count = len(leaving)
    return replace(
        job,
        id=leaving_id(job.id),
        spec=job.spec.changed(workers=count, min_workers=count),
        activity=Activity.TERMINATING,
        held=_workers(leaving),
        is_nominated=False,
        nominated=(),
    )


def barred(
    record: JobRecord, slices: frozenset[str], refused: Iterable[str] = ()
) -> frozenset[NodeName]:
    """Return the places that a job may not use."""
    out = {*refused, *(() if record.spec.gpu_models else slices)}
    return frozenset(NodeName(place) for place in out)


def closed_to(spec: JobSpec, seen: Observations, now: float) -> Iterator[str]:
    """Yield the places that administrators have closed to the job, considering its time limit."""
    return closings.barred_places(seen.nodes, seen.inventory.places, spec.time_limit_s, now)


def barred_of(ledger: Ledger, record: JobRecord) -> Iterator[tuple[str, float]]:
    """Yield the places that refused a worker of the job, each with the end of its bar."""
    if record.attempt:
        yield from ((bar.place, bar.until) for bar in node_bars(ledger.attempts(record.id)))


def avoided_of(record: JobRecord, seen: Observations, now: float) -> Iterator[str]:
    """Yield the places on nodes that a job avoids for a while because it failed there."""
    if record.retried:
        off = frozenset(retry_bars.avoided(record.retried, seen.inventory.train, now))
        yield from (place for place in seen.inventory.places if off and node_of(place) in off)


def out_until(ledger: Ledger, record: JobRecord) -> float:
    """Return until when the job may not start on any node, in seconds since the epoch."""
    bar = room_bar(ledger.attempts(record.id)) if record.attempt else None
    return max(0.0 if bar is None else bar.until, retry_bars.paused_until(record.retried))


def expiries(ledger: Ledger, record: JobRecord, seen: Observations) -> Iterator[float]:
    """Yield the instants at which the job changes for the core without an event."""
    yield from closings.changes(seen.nodes, record.spec.time_limit_s)
    for preemption in ledger.preemptions(record.id):
        yield preemption.at + HOUR_S
        yield preemption.at + DAY_S
    yield from (end for _, end in barred_of(ledger, record))
    yield from (retry.avoided_until for retry in record.retried)
    yield out_until(ledger, record)


def _workers(records: Iterable[WorkerRecord]) -> tuple[Worker, ...]:
    return tuple(_seated(w.node, w.gpus) for w in records)


def _seated(node: str, gpus: Sequence[str]) -> Worker:
    return Worker(NodeName(place_of(node, gpus)), tuple(GpuId(gpu) for gpu in gpus))


def _asked(
    record: JobRecord,
    attempt: AttemptRecord | None,
    staying: Sequence[WorkerRecord],
    leaving: Sequence[WorkerRecord],
) -> JobSpec:
    """Return the present request. After workers of a gang have ended, it covers the rest."""
    held, spec = len(staying), record.spec
    least = spec.least_workers
    if held and attempt is not None and held < least:
        return spec.changed(workers=held, min_workers=held)
    if held and attempt is not None and any(w.ended and not w.leaving for w in attempt.workers):
        return spec.changed(workers=held, min_workers=min(held, least))
    workers = max(held, spec.workers - len(leaving), 1)
    return spec if workers == spec.workers else spec.changed(workers=workers, min_workers=least)


def _activity(record: JobRecord, attempt: AttemptRecord | None) -> Activity:
    if record.state not in states.HOLDS_GPUS or attempt is None:
        return Activity.QUEUED
    if record.stop_request is not None or transitions.winding_down(attempt):
        return Activity.TERMINATING
    return Activity.RUNNING


class _Times(TypedDict):
    as_of_s: float
    ran_s: float
    since_checkpoint_s: float | None
    waits_s: float


def _times(record: JobRecord, attempt: AttemptRecord | None, now: float) -> _Times:
    """Return the times of a job, as of its last checkpoint, the start of its run or of its wait."""
    if attempt is None:
        queued = min(record.queued_since, now)
        return _Times(as_of_s=queued, ran_s=0.0, since_checkpoint_s=None, waits_s=0.0)
    begun = attempt.decided if attempt.started is None else attempt.started
    saved = record.progress.checkpoint_at if record.progress is not None else None
    # A clock that was set back must not make a time negative.
    as_of = min(max(begun, saved or 0.0), now)
    ran = max(0.0, as_of - begun)
    return _Times(as_of_s=as_of, ran_s=ran, since_checkpoint_s=0.0, waits_s=0.0)


def at(job: JobFacts, now: float) -> JobFacts:
    """Return a job with its times as of ``now``."""
    unsaved = None if job.since_checkpoint_s is None else job.unsaved_at(now)
    queued = job.activity is Activity.QUEUED
    return replace(
        job,
        as_of_s=now,
        ran_s=0.0 if queued else job.ran_at(now),
        since_checkpoint_s=unsaved,
        waits_s=job.waited_at(now) if queued else 0.0,
    )


def workers_at(places: Iterable[Place]) -> tuple[Worker, ...]:
    """Return places as workers of the core."""
    return tuple(_seated(place.node, place.gpus) for place in places)


def places_of(workers: Iterable[Worker]) -> tuple[Place, ...]:
    """Return workers of the core as places of the store."""
    return tuple(
        Place(node_of(worker.node), tuple(str(gpu) for gpu in worker.gpus)) for worker in workers
    )


def candidate(record: JobRecord, seen: Observations, now: float | None = None) -> JobFacts:
    """Return the facts of a job that was not accepted yet.

    Args:
        now: Time of acceptance. None to check only whether it could ever run.
    """
    closed = () if now is None else closed_to(record.spec, seen, now)
    return JobFacts(
        id=JobId(record.id),
        project=ProjectName(record.project),
        spec=seen.default_amounts.of(record.spec),
        user=record.user,
        barred=barred(record, seen.inventory.slices, closed),
    )
