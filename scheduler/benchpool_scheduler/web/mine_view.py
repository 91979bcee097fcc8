"""The reader's quotas, free GPUs, and activity of own jobs and benches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from benchpool_scheduler import phrases
from benchpool_scheduler.contract import Job, ProjectQuota
from benchpool_scheduler.contract.gpu_use import GpuUse
from benchpool_scheduler.service.views.used_so_far import UsedSoFar
from benchpool_scheduler.telemetry import ActivityBucket
from benchpool_scheduler.web.pool_view import server_name
from benchpool_scheduler.web.words import Moment, optional_moment

WIDTH, HEIGHT = 160.0, 32.0
"""Size of a sparkline, in its own units."""


@dataclass(frozen=True, slots=True)
class ProjectCard:
    """One project: its held GPUs, and the GPUs that a new job could get now."""

    name: str
    holds: str
    fair_share: int
    waiting: int
    free: str
    hours: str
    reserved: Sequence[str]


@dataclass(frozen=True, slots=True)
class Sparkline:
    """Chart of the last hour, one line for each segment without a gap; ``words`` describe it."""

    lines: tuple[str, ...]
    words: str


@dataclass(frozen=True, slots=True)
class HoldingRow:
    """A job or a bench of the reader that holds GPUs; ``job`` is empty for a bench."""

    key: str
    name: str
    job: str
    gpus: str
    now: str
    idle: Moment | None
    memory: str
    sparkline: Sparkline
    so_far: str


@dataclass(frozen=True, slots=True)
class PoolRoom:
    """GPUs that are obtainable in the pool: free ones, and those that jobs hold over quota.

    Attributes:
        grace_s: Maximum time for those jobs to pause, in seconds.
    """

    free: int
    borrowed: int
    grace_s: float


def project_cards(projects: Sequence[ProjectQuota], room: PoolRoom) -> Sequence[ProjectCard]:
    """Return a card for each project that accepts jobs."""
    return [
        ProjectCard(
            name=one.name,
            holds=f"{one.allocated} of {one.quota}"
            if one.quota is not None
            else str(one.allocated),
            fair_share=one.fair_share,
            waiting=one.waiting,
            free=obtainable(one, room),
            hours="" if one.gpu_hours is None else one.gpu_hours.text,
            reserved=[it.text for it in one.reserved],
        )
        for one in projects
    ]


def obtainable(one: ProjectQuota, room: PoolRoom) -> str:
    """Return the GPUs that a project could get, in words: free ones first, then by reclaim (R4).

    >>> project, full = ProjectQuota("vision", 4, 4, 2, 6, 0), PoolRoom(0, 5, 30.0)
    >>> print(obtainable(project, PoolRoom(8, 0, 30.0)))
    4 GPUs now: 2 within the quota, 2 borrowed
    >>> print(obtainable(project, PoolRoom(1, 5, 30.0)))
    1 GPU now, within the quota; 1 more of the quota after jobs over quota pause (30 s at most)
    >>> print(obtainable(project, full))
    none now; 2 GPUs of the quota after jobs over quota pause (30 s at most)
    >>> print(obtainable(project, PoolRoom(0, 0, 30.0)))
    none is free
    """
    left = None if one.limit is None else max(0, one.limit - one.allocated)
    if left == 0:
        return "none: the project's limit is reached"
    most = room.free if left is None else min(room.free, left)
    due = None if one.quota is None else max(0, one.quota - one.allocated)
    within = most if due is None else min(most, due)
    claims = 0 if due is None else min(due - within, room.borrowed, (left or due) - most)
    if not most and not claims:
        return "none is free"
    now = "none now"
    if most > within:
        parts = [f"{within} within the quota"] if within else []
        parts.append(f"{most - within} borrowed")
        now = f"{phrases.count(most, 'GPU')} now: {', '.join(parts)}"
    elif most:
        now = f"{phrases.count(most, 'GPU')} now, within the quota"
    if claims <= 0:
        return now
    more = f"{claims} more" if most else phrases.count(claims, "GPU")
    return (
        f"{now}; {more} of the quota after jobs over quota pause "
        f"({phrases.exactly(room.grace_s)} at most)"
    )


def holdings(
    uses: Sequence[GpuUse],
    jobs: Mapping[str, Job],
    past: Sequence[ActivityBucket],
    span: tuple[int, int],
    now: datetime,
    used: Mapping[str, str],
) -> Sequence[HoldingRow]:
    """Return a row for each job and bench that holds GPUs, jobs first.

    Args:
        uses: The reader's GPUs as last measured. ``past``: measurements in ``span``, by holder,
            in minutes. ``span``: begin and end of the sparklines, epoch seconds.
        used: Use so far of each, in words, by the key of its row.
    """
    grouped: dict[tuple[str, str], list[GpuUse]] = defaultdict(list)
    for use in uses:
        grouped[use.job or "", "" if use.job else use.server or ""].append(use)
    return [
        _holding(key, held, jobs.get(key[0]), past, span, now, used)
        for key, held in sorted(grouped.items(), key=lambda it: (not it[0][0], it[0]))
    ]


def _holding(
    key: tuple[str, str],
    held: Sequence[GpuUse],
    job: Job | None,
    past: Sequence[ActivityBucket],
    span: tuple[int, int],
    now: datetime,
    used: Mapping[str, str],
) -> HoldingRow:
    id, server = key
    of = {use.uuid for use in held}
    own = [it for it in past if it.gpu in of and (it.holder.job or "") == id]
    known = [use.activity for use in held if use.activity is not None]
    idle = [use.idle_since for use in held]
    since = max((at for at in idle if at is not None), default=None)
    return HoldingRow(
        key=id or f"bench-{server}",
        name=job.name if job else id[:8] if id else f"bench: {server_name(server)}",
        job=id,
        gpus=_places(held),
        now=phrases.percent(sum(known) / len(known)) if known else "not measured",
        idle=optional_moment(since if None not in idle else None, now),
        memory=headroom(held) + mean_memory(own),
        sparkline=sparkline(own, *span),
        so_far=used.get(id or f"bench-{server}", "–"),
    )


def so_far(used: UsedSoFar, currency: str) -> str:
    """Return the use so far by a job or bench, in words.

    >>> so_far(UsedSoFar(6.5, 5.04e6, 13.0), "CHF"), so_far(UsedSoFar(0.25, None, None), "")
    ('6.50 GPU-hours, 1.40 kWh, 13.00 CHF', '0.25 GPU-hours')
    """
    parts = [f"{phrases.gpu_hours(used.gpu_h)} GPU-hours"]
    parts += [] if used.energy_j is None else [phrases.energy(used.energy_j / 3600)]
    parts += [] if used.cost is None else [f"{used.cost:,.2f} {currency}".rstrip()]
    return ", ".join(parts)


def mean_memory(past: Sequence[ActivityBucket]) -> str:
    """Return the mean over minutes and GPUs of the peak memory in each minute."""
    known = [it.memory_max_gib for it in past if it.memory_max_gib is not None]
    return f"; mean of the last hour {sum(known) / len(known):.0f} GB" if known else ""


def _places(held: Sequence[GpuUse]) -> str:
    of: dict[str, list[int]] = defaultdict(list)
    for use in held:
        of[use.node].append(use.index)
    return "; ".join(f"{node}: {', '.join(map(str, sorted(of[node])))}" for node in sorted(of))


def headroom(held: Sequence[GpuUse]) -> str:
    """Return the used and free memory of the fullest GPU."""
    known = [
        (use.memory_total_gib - use.memory_used_gib, use.memory_used_gib, use.memory_total_gib)
        for use in held
        if use.memory_used_gib is not None and use.memory_total_gib is not None
    ]
    if not known:
        return "not measured"
    left, used, total = min(known)
    fullest = " on the fullest GPU" if len(held) > 1 else ""
    return f"{used:.0f} of {total:.0f} GB, {max(0.0, left):.0f} free{fullest}"


def sparkline(past: Sequence[ActivityBucket], begin: int, end: int) -> Sparkline:
    """Return the mean activity of some GPUs, minute by minute."""
    sums: dict[int, list[float]] = {}
    for bucket in past:
        if bucket.covered_s > 0 and begin <= bucket.begin < end:
            at = sums.setdefault(bucket.begin, [0.0, 0.0])
            at[0] += bucket.active_s
            at[1] += bucket.covered_s
    points = {at: min(1.0, active / covered) for at, (active, covered) in sorted(sums.items())}
    if not points:
        return Sparkline((), "no measurements in the last hour")
    shares = list(points.values())
    words = (
        f"last hour: {phrases.percent(sum(shares) / len(shares))} active in the mean, "
        f"{phrases.percent(min(shares))} at least, {phrases.percent(max(shares))} at most"
    )
    return Sparkline(tuple(_lines(points, begin, end)), words)


def _lines(points: Mapping[int, float], begin: int, end: int) -> Iterator[str]:
    """Yield the points of each segment; a gap of more than two minutes begins a new one."""
    stretch: list[str] = []
    last: int | None = None
    for at, share in points.items():
        if last is not None and at - last > 120 and stretch:
            yield " ".join(stretch)
            stretch = []
        x = (at - begin) / (end - begin) * WIDTH
        stretch.append(f"{x:.1f},{HEIGHT - 1 - share * (HEIGHT - 2):.1f}")
        last = at
    yield " ".join(stretch)
