"""The pool at an instant, as the core wants to see it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from benchpool_scheduler.core import states
from benchpool_scheduler.core.model import (
    Activity,
    GpuId,
    Job,
    JobId,
    Node,
    NodeName,
    Project,
    ProjectName,
    Snapshot,
    Worker,
)
from benchpool_scheduler.runtime import DeviceState
from benchpool_scheduler.service import benches, lifecycle
from benchpool_scheduler.service.ledger import Ledger
from benchpool_scheduler.service.site import Site
from benchpool_scheduler.service.submissions import Capacity
from benchpool_scheduler.store.records import AttemptRecord, JobRecord, Place

HOUR_S = 3600.0


def snapshot(ledger: Ledger, site: Site, now: float) -> Snapshot:
    """Return what the next pass decides about."""
    live = ledger.live()
    home = homes(site, live)
    return Snapshot(
        nodes=nodes(ledger, site),
        projects=projects(site, home.values()),
        jobs=tuple(
            _job(ledger, record, home[record.project], now)
            for record in live
            if record.state is not states.JobState.PAUSED
        ),
        policy=site.configuration.policy,
    )


# --------------------------------------------------------------------------- nodes


def nodes(ledger: Ledger, site: Site) -> tuple[Node, ...]:
    """Return the nodes with the GPUs that train may use, in use by workers or not (R1)."""
    leased = {gpu for lease in ledger.leases() for gpu in lease.gpus}
    running, leaving = _held(ledger)
    kept = benches.kept_by_node(ledger, site)
    found: list[Node] = []
    for name, devices in benches.by_node(site.devices).items():
        if not benches.serves(site, devices, "train"):
            continue
        gpus = tuple(
            GpuId(device.uuid)
            for device in devices
            if device.uuid not in leased
            and device.uuid not in leaving
            and (device.state is DeviceState.USABLE or device.uuid in running)
        )
        model = devices[0].model
        found.append(
            Node(
                name=NodeName(name),
                gpus=gpus,
                kept=kept.get(name, 0),
                gpu_model=model,
                labels={"gpu.model": model},
            )
        )
    return tuple(found)


def _held(ledger: Ledger) -> tuple[set[str], set[str]]:
    """Return GPUs of workers that stay, and of workers that were let go and are not gone."""
    running: set[str] = set()
    leaving: set[str] = set()
    for job in ledger.live():
        attempt = ledger.attempt(job.id, job.attempt)
        for worker in attempt.live_workers if attempt is not None else ():
            (leaving if worker.leaving else running).update(worker.gpus)
    return running, leaving


def capacity(site: Site) -> Capacity:
    """Return what train could have if nobody held anything (R3, R22)."""
    sizes = [
        len(devices)
        for devices in benches.by_node(site.devices).values()
        if benches.serves(site, devices, "train")
    ]
    total = max(0, sum(sizes) - benches.reserve(site))
    return Capacity(largest_node=min(max(sizes, default=0), total), total=total)


# --------------------------------------------------------------------------- projects


def homes(site: Site, live: Iterable[JobRecord]) -> Mapping[str, ProjectName]:
    """Return in which project of the snapshot the jobs of each project are.

    Jobs may name a project that the configuration no longer has, or that now only groups others.
    They are in a project of their own that gets nothing: they give way, and do not start.
    """
    settings = site.configuration
    found: dict[str, ProjectName] = {}
    for name in dict.fromkeys(job.project for job in live):
        divided = settings.is_parent(name)
        found[name] = ProjectName(f"{name} (before it was divided)" if divided else name)
    return found


def projects(site: Site, names: Iterable[ProjectName]) -> tuple[Project, ...]:
    """Return the configured projects, and those of ``names`` that are not among them."""
    known = [settings.project for settings in site.configuration.projects]
    missing = dict.fromkeys(names)
    for project in known:
        missing.pop(project.name, None)
    return (*known, *(Project(name=name, quota=0, limit=0, weight=0.0) for name in missing))


# --------------------------------------------------------------------------- jobs


def _job(ledger: Ledger, record: JobRecord, project: ProjectName, now: float) -> Job:
    attempt = ledger.attempt(record.id, record.attempt)
    holds = record.state in states.HOLDS_GPUS
    workers = [w for w in attempt.live_workers if not w.leaving] if attempt and holds else []
    preempted = sum(it.at > now - HOUR_S for it in ledger.preemptions(record.id))
    size = _size(record, attempt, len(workers))
    return Job(
        id=JobId(record.id),
        project=project,
        gpus=record.gpus,
        workers=size[0],
        min_workers=size[1],
        user=record.user,
        priority=record.priority,
        preemptible=record.preemptible,
        activity=_activity(record, attempt),
        held=tuple(Worker(NodeName(w.node), tuple(GpuId(gpu) for gpu in w.gpus)) for w in workers),
        time_limit_s=record.time_limit_s,
        ran_s=_ran_s(attempt, now) if holds else 0.0,
        since_checkpoint_s=_since_checkpoint_s(record, attempt, now) if holds else None,
        waits_s=0.0 if holds else max(0.0, now - record.queued_since),
        earmarked=bool(record.promised),
        promised=workers_at(record.promised),
        preemptions_last_hour=preempted,
    )


def _size(record: JobRecord, attempt: AttemptRecord | None, held: int) -> tuple[int, int]:
    """Return (workers, min_workers): of a gang whose first workers have ended well, the rest."""
    if held and attempt is not None and held < record.min_workers:
        return held, held
    if held and attempt is not None and any(w.ended and not w.leaving for w in attempt.workers):
        return held, min(held, record.min_workers)
    return record.workers, record.min_workers


def _activity(record: JobRecord, attempt: AttemptRecord | None) -> Activity:
    if record.state not in states.HOLDS_GPUS or attempt is None:
        return Activity.QUEUED
    if record.wish is not None or lifecycle.winding_down(attempt):
        return Activity.TERMINATING
    return Activity.RUNNING


def _ran_s(attempt: AttemptRecord | None, now: float) -> float:
    return 0.0 if attempt is None else max(0.0, now - _begun(attempt))


def _begun(attempt: AttemptRecord) -> float:
    return attempt.decided if attempt.started is None else attempt.started


def _since_checkpoint_s(record: JobRecord, attempt: AttemptRecord | None, now: float) -> float:
    if attempt is None:
        return 0.0
    saved = record.progress.checkpoint_at if record.progress is not None else None
    return max(0.0, now - max(_begun(attempt), saved or 0.0))


def workers_at(places: Iterable[Place]) -> tuple[Worker, ...]:
    """Return places in the core's words."""
    return tuple(
        Worker(NodeName(place.node), tuple(GpuId(gpu) for gpu in place.gpus)) for place in places
    )


def places_of(workers: Iterable[Worker]) -> tuple[Place, ...]:
    """Return the core's places in the store's words."""
    return tuple(
        Place(str(worker.node), tuple(str(gpu) for gpu in worker.gpus)) for worker in workers
    )


def candidate(record: JobRecord) -> Job:
    """Return a job that was not accepted yet, for a preview."""
    return Job(
        id=JobId(record.id),
        project=ProjectName(record.project),
        gpus=record.gpus,
        workers=record.workers,
        min_workers=record.min_workers,
        user=record.user,
        priority=record.priority,
        preemptible=record.preemptible,
        time_limit_s=record.time_limit_s,
    )
