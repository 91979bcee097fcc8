"""Summaries of ended jobs: by day, by project and user, waits and pauses. Pure functions."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from benchpool_scheduler import phrases
from benchpool_scheduler.accounting.percentiles import percentile
from benchpool_scheduler.contract import Attempt, Job, State
from benchpool_scheduler.phrases import count, duration, gpu_hours, gpu_time

HOUR_S = 3600.0
ENDS = (State.SUCCEEDED, State.FAILED, State.CANCELLED)
"""Final states, from the bottom of a bar to its top."""

WIDTHS = ((62, 1), (434, 7), (3660, 30))
"""Maximum number of days, and days per bar up to it."""

STEPS = (1, 2, 2.5, 5, 10)
"""Steps between the lines of an axis, times a power of ten."""


@dataclass(frozen=True, slots=True)
class EndedJob:
    """Ended job with its use: ``held`` has begin, end and GPUs of each attempt."""

    job: Job
    held: tuple[tuple[datetime, datetime, int], ...]

    @property
    def gpu_h(self) -> float:
        """Return the GPU-hours of all attempts."""
        return sum((end - begin).total_seconds() * gpus for begin, end, gpus in self.held) / HOUR_S

    @property
    def waited_s(self) -> float | None:
        """Return the seconds until its first start; None if it never started."""
        return (
            max(0.0, (self.held[0][0] - self.job.submitted).total_seconds()) if self.held else None
        )


@dataclass(frozen=True, slots=True)
class DayBar:
    """GPU-hours of the days from ``first`` to ``last``, by how their jobs ended."""

    first: date
    last: date
    hours: Mapping[State, float]

    @property
    def total(self) -> float:
        """Return the GPU-hours of all states."""
        return sum(self.hours.values())

    @property
    def title(self) -> str:
        """Return the days in words."""
        return f"{self.first}" if self.first == self.last else f"{self.first} to {self.last}"


@dataclass(frozen=True, slots=True)
class JobsOf:
    """Totals of one project's or user's jobs, in words."""

    name: str
    jobs: int
    ends: str
    hours: str
    median: str
    p95: str
    pauses: str


def ended(job: Job, attempts: Iterable[Attempt]) -> EndedJob:
    """Return an ended job with its use."""
    held = (
        (one.started, one.ended, len(one.gpus))
        for one in attempts
        if one.started is not None and one.ended is not None
    )
    return EndedJob(job, tuple(sorted(held)))


def bars(jobs: Sequence[EndedJob], first: date, last: date, zone: tzinfo = UTC) -> list[DayBar]:
    """Return the GPU-hours of each bar of days; attempts are split at its borders.

    Args:
        zone: Time zone of the days.
    """
    days = (last - first).days + 1
    width = next((size for most, size in WIDTHS if days <= most), WIDTHS[-1][1])
    held_h: defaultdict[tuple[int, State], float] = defaultdict(float)
    for one in jobs:
        for begin, end, gpus in one.held:
            for day, seconds in _by_day(begin, end, zone):
                if first <= day <= last:
                    held_h[(day - first).days // width, one.job.state] += seconds * gpus / HOUR_S
    return [
        DayBar(
            first + timedelta(days=at * width),
            min(last, first + timedelta(days=(at + 1) * width - 1)),
            {state: held_h[at, state] for state in ENDS},
        )
        for at in range(math.ceil(days / width))
    ]


def _by_day(begin: datetime, end: datetime, zone: tzinfo) -> Iterator[tuple[date, float]]:
    # Differences are taken in UTC: in a zone with summer time they are those of the clock.
    at, end = begin.astimezone(UTC), end.astimezone(UTC)
    while at < end:
        day = at.astimezone(zone).date()
        midnight = datetime.combine(day + timedelta(days=1), time(), zone).astimezone(UTC)
        yield day, (min(end, midnight) - at).total_seconds()
        at = midnight


def axis(most: float) -> list[float]:
    """Return the lines of an axis from zero, the last at or above ``most``.

    >>> axis(7.2), axis(0), axis(130)
    ([0.0, 2.0, 4.0, 6.0, 8.0], [0.0, 0.25, 0.5, 0.75, 1.0], [0.0, 50.0, 100.0, 150.0])
    """
    most = most or 1.0
    power = 10.0 ** math.floor(math.log10(most / 4))
    step = next(one * power for one in STEPS if one * power >= most / 4)
    return [round(step * number, 6) for number in range(math.ceil(round(most / step, 6)) + 1)]


def shares(jobs: Sequence[EndedJob], key: Callable[[Job], str]) -> list[JobsOf]:
    """Return the totals of jobs by project or user, the most GPU-hours first."""
    found: defaultdict[str, list[EndedJob]] = defaultdict(list)
    for one in jobs:
        found[key(one.job)].append(one)
    ordered = sorted(found.items(), key=lambda it: (-sum(one.gpu_h for one in it[1]), it[0]))
    return [_share(name, its) for name, its in ordered]


def _share(name: str, jobs: Sequence[EndedJob]) -> JobsOf:
    ends = Counter(one.job.state for one in jobs)
    waits = sorted(one.waited_s for one in jobs if one.waited_s is not None)
    pauses = [pause for one in jobs for pause in one.job.preemptions]
    lost = sum(pause.lost_gpu_s for pause in pauses)
    return JobsOf(
        name,
        len(jobs),
        ", ".join(f"{ends[state]} {state}" for state in ENDS if ends[state]),
        gpu_hours(sum(one.gpu_h for one in jobs)),
        duration(percentile(waits, 50)) if waits else "–",
        duration(percentile(waits, 95)) if waits else "–",
        f"{len(pauses)}, lost {gpu_time(lost)}" if pauses else "none",
    )


def sentence(jobs: Sequence[EndedJob], whose: str) -> str:
    """Return a summary of all jobs."""
    if not jobs:
        return f"None of {whose} ended in these days."
    all_ = _share("", jobs)
    waited = (
        "" if all_.median == "–" else f" Half of them began within {all_.median} of being sent."
    )
    return f"{count(len(jobs), 'job')} ended: {all_.ends}; {all_.hours} GPU-hours in all.{waited}"


COLUMNS = (
    *("id", "name", "project", "user", "state", "gpus", "attempts", "submitted", "started"),
    *("ended", "waited_s", "gpu_hours", "pauses", "lost_gpu_s"),
)


def as_csv(jobs: Iterable[EndedJob]) -> str:
    """Return the jobs as CSV, times in UTC."""
    return phrases.as_csv(COLUMNS, map(_cells, jobs))


def _cells(one: EndedJob) -> Sequence[object]:
    job, begun = one.job, one.held[0][0] if one.held else None
    return (
        *(job.id, job.name, job.project, job.user, job.state.value),
        *(job.gpus * job.workers, job.attempt),
        *("" if at is None else f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
          for at in (job.submitted, begun, job.ended)),
        "" if one.waited_s is None else f"{one.waited_s:.0f}",
        f"{one.gpu_h:.4f}",
        len(job.preemptions),
        f"{sum(pause.lost_gpu_s for pause in job.preemptions):.0f}",
    )  # fmt: skip
