"""Tables for administrators: waste by project, starved projects, idle benches, preemptions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from benchpool_scheduler import phrases
from benchpool_scheduler.accounting.classes import WASTED, computed_part
from benchpool_scheduler.contract import Gpu, Job, Lease, ProjectQuota, ReclaimRequest
from benchpool_scheduler.contract.gpu_use import GpuUse
from benchpool_scheduler.contract.idle_benches import BenchIdleness, BenchStep
from benchpool_scheduler.contract.use import UseClass, UseRow
from benchpool_scheduler.service.administration.preemption_ledger import PreemptionCost
from benchpool_scheduler.telemetry.xids import XidSeen
from benchpool_scheduler.web.pool_view import gpu_places, server_name
from benchpool_scheduler.web.words import Moment, moment, optional_moment

RULES: Mapping[str, str] = {
    "R3": "a bench needs it",
    "R15": "owed to a project below its share",
    "R18": "moved to make room",
}
"""Reason for a preemption, by its rule."""

XIDS: Mapping[int, str] = {
    13: "a fault in the program on the GPU",
    31: "the program used memory that is not its own",
    43: "the program was stopped by the driver",
    45: "the program's work was cleaned up after another error",
    48: "memory error that could not be corrected",
    63: "a row of memory was replaced",
    64: "a row of memory could not be replaced",
    74: "fault on an NVLink",
    79: "the GPU has fallen off the bus",
    94: "memory error, contained to one program",
    95: "memory error, not contained",
    119: "the GPU's own processor does not answer",
}
"""The most frequent driver errors, after NVIDIA's list of XID errors."""


@dataclass(frozen=True, slots=True)
class WasteRow:
    """One project with its held GPUs and its waste of the last 7 days."""

    name: str
    holds: str
    over: int
    fair_share: int
    waiting: int
    oldest: Moment | None
    computed: str
    held_h: float
    held: str
    waste_h: float
    waste: str
    part: str
    gave: int
    took: int


SORTS: Mapping[str, tuple[str, Callable[[WasteRow], tuple[object, ...]]]] = {
    "waste": ("Waste, 7 d", lambda row: (-row.waste_h, row.name)),
    "held": ("Held, 7 d", lambda row: (-row.held_h, row.name)),
    "waiting": ("Waiting", lambda row: (-row.waiting, row.name)),
    "over": ("Over quota", lambda row: (-row.over, row.name)),
    "name": ("Project", lambda row: (row.name,)),
}
"""Sort keys of the rows, with their titles."""


def waste_rows(
    projects: Sequence[ProjectQuota],
    week: Mapping[str, UseRow],
    waiting: Sequence[Job],
    now: datetime,
    sort: str,
) -> Sequence[WasteRow]:
    """Return a row for each project that holds, waits or has held something.

    Args:
        week: Use by each project, by name.
        waiting: The waiting jobs.
    """
    oldest: dict[str, datetime] = {}
    for job in waiting:
        since = job.in_line_since or job.submitted
        oldest[job.project] = min(since, oldest.get(job.project, since))
    rows = [
        _waste(one, week.get(one.name), optional_moment(oldest.get(one.name), now))
        for one in projects
        if one.allocated or one.waiting or one.name in week
    ]
    return sorted(rows, key=SORTS.get(sort, SORTS["waste"])[1])


def _waste(one: ProjectQuota, used: UseRow | None, oldest: Moment | None) -> WasteRow:
    waste_h, held_h, computed = wasted(used)
    return WasteRow(
        name=one.name,
        holds=f"{one.allocated} of {one.quota}" if one.quota is not None else str(one.allocated),
        over=_over(one),
        fair_share=one.fair_share,
        waiting=one.waiting,
        oldest=oldest,
        computed=computed,
        held_h=held_h,
        held=phrases.gpu_hours(held_h),
        waste_h=waste_h,
        waste=phrases.gpu_hours(waste_h),
        part=phrases.share(waste_h / held_h) if held_h else "–",
        gave=0 if used is None else used.preemptions_given,
        took=0 if used is None else used.preemptions_taken,
    )


def wasted(used: UseRow | None) -> tuple[float, float, str]:
    """Return wasted and held GPU-hours, and the computing share of the measured ones."""
    if used is None or used.held_gpu_h <= 0:
        return 0.0, 0.0, "–"
    waste_h = sum(used.gpu_h.get(one, 0.0) for one in WASTED)
    computed = computed_part(used.gpu_h)
    return waste_h, used.held_gpu_h, "not measured" if computed is None else phrases.share(computed)


def idle_hours(used: UseRow) -> str:
    """Return the GPU-hours that benches held idle."""
    return phrases.gpu_hours(used.gpu_h.get(UseClass.IDLE_BENCH, 0.0))


def _over(one: ProjectQuota) -> int:
    return 0 if one.quota is None else max(0, one.allocated - one.quota)


# ---------------------------------------------------------------------------- starved projects


@dataclass(frozen=True, slots=True)
class StarvedRow:
    """A project below its quota with waiting jobs, and the job that has waited longest."""

    project: str
    holds: str
    waiting: int
    job: Job
    since: Moment
    reason: str


@dataclass(frozen=True, slots=True)
class StarvedView:
    """Starved projects, and projects over quota meanwhile; ``text`` is the summary."""

    text: str
    rows: tuple[StarvedRow, ...]


def starved_view(
    projects: Sequence[ProjectQuota], waiting: Sequence[Job], now: datetime
) -> StarvedView:
    """Return the projects that wait below their quota while other projects are over theirs."""
    above = {one.parent for one in projects}
    own = [one for one in projects if one.name not in above]
    borrowers = [f"{one.name} ({_over(one)})" for one in own if _over(one)]
    rows = tuple(_starved(own, waiting, now))
    if not rows:
        text = "No project waits while it holds less than its quota."
    elif not borrowers:
        text = "No project is over quota, but jobs wait in projects below their quota."
    else:
        text = f"GPUs over quota: {', '.join(borrowers)}. These projects wait below their quota:"
    return StarvedView(text, rows)


def _starved(
    projects: Iterable[ProjectQuota], waiting: Sequence[Job], now: datetime
) -> Iterator[StarvedRow]:
    for one in projects:
        jobs = [job for job in waiting if job.project == one.name]
        if not jobs or one.quota is None or one.allocated >= one.quota:
            continue
        first = min(jobs, key=lambda job: job.in_line_since or job.submitted)
        yield StarvedRow(
            project=one.name,
            holds=f"{one.allocated} of {one.quota}",
            waiting=len(jobs),
            job=first,
            since=moment(first.in_line_since or first.submitted, now),
            reason=first.reason.text if first.reason else "The next pass will set the reason.",
        )


# ---------------------------------------------------------------------------- idle benches


@dataclass(frozen=True, slots=True)
class IdleBenchRow:
    """A bench with no kernel on its GPUs for some time; ``gpu_h`` is the loss so far.

    ``stands`` is its state by the site's rule for idle benches; ``coming`` is the next step, at
    ``at``.
    """

    user: str
    server: str
    gpus: str
    since: Moment
    stands: str
    coming: str
    at: Moment | None
    seen: Moment | None
    gpu_h: str
    lease: str
    asked: ReclaimRequest | None
    asked_at: Moment | None


def idle_benches(
    leases: Sequence[Lease],
    uses: Sequence[GpuUse],
    gpus: Sequence[Gpu],
    standing: Mapping[str, BenchIdleness],
    now: datetime,
) -> Sequence[IdleBenchRow]:
    """Return the benches with only idle GPUs, as measured, the longest first.

    Args:
        standing: State of each by the rule, by the ID of its lease.
    """
    of = {use.uuid: use.idle_since for use in uses}
    found: list[tuple[datetime, Lease]] = []
    for lease in leases:
        since = [of.get(gpu) for gpu in lease.gpus]
        known = [at for at in since if at is not None]
        if known and len(known) == len(since):
            found.append((max(known), lease))
    return [
        IdleBenchRow(
            user=lease.user,
            server=server_name(lease.server),
            gpus=gpu_places(gpus, lease.gpus),
            since=moment(since, now),
            **_standing(standing.get(lease.id), now),
            seen=optional_moment(lease.last_active, now),
            gpu_h=phrases.gpu_hours((now - since).total_seconds() / 3600 * len(lease.gpus)),
            lease=lease.id,
            asked=lease.reclaim_request,
            asked_at=optional_moment(
                lease.reclaim_request.at if lease.reclaim_request else None, now
            ),
        )
        for since, lease in sorted(found, key=lambda it: (it[0], it[1].user))
    ]


def _standing(bench: BenchIdleness | None, now: datetime) -> dict[str, Any]:
    if bench is None:
        return {"stands": "", "coming": "", "at": None}
    spared = bench.exempt_until or bench.kept_until
    works = bench.step in (BenchStep.CPU_PHASE, BenchStep.DOUBT, BenchStep.DUE)
    return {
        "stands": phrases.bench_state(bench) if spared or works else "",
        "coming": phrases.bench_coming(bench),
        "at": optional_moment(bench.next_at, now),
    }


# ---------------------------------------------------------------------------- preemptions, XIDs


@dataclass(frozen=True, slots=True)
class PaidRow:
    """One preemption in words."""

    paid: PreemptionCost
    at: Moment
    why: str
    lost: str
    then: str


def paid_rows(found: Sequence[PreemptionCost], now: datetime) -> Sequence[PaidRow]:
    """Return the rows of the preemption ledger."""
    return [
        PaidRow(
            paid=one,
            at=moment(datetime.fromtimestamp(one.at, UTC), now),
            why=RULES.get(one.rule, ""),
            lost=_lost(one),
            then=f"resumed on {one.resumed_on}" if one.resumed_on else "waits",
        )
        for one in found
    ]


def _lost(one: PreemptionCost) -> str:
    if one.lost_gpu_s < phrases.NOTHING_S:
        return "nothing" if one.final else "nothing yet"
    amount = phrases.gpu_time(one.lost_gpu_s)
    return amount if one.final else f"about {amount} so far"


@dataclass(frozen=True, slots=True)
class XidRow:
    """One driver error in words."""

    at: Moment
    gpu: str
    xid: int
    words: str
    job: str
    user: str


def xid_rows(found: Iterable[XidSeen], gpus: Sequence[Gpu], now: datetime) -> Sequence[XidRow]:
    """Return the rows of driver errors."""
    return [
        XidRow(
            at=moment(datetime.fromtimestamp(one.at, UTC), now),
            gpu=gpu_places(gpus, [one.gpu]),
            xid=one.xid,
            words=XIDS.get(one.xid, ""),
            job=one.holder.job or "",
            user=one.holder.user or "",
        )
        for one in found
    ]
