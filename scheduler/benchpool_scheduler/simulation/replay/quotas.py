"""Quotas of a replay: by a rule from the trace's own demand, or from a file."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.simulation.replay.trace import TraceJob

RULES = ("p98", "p98-scaled", "equal")
PERCENTILE = 0.98

Quotas = dict[str, int]
"""Guaranteed GPUs by project, in the order in which the projects first submitted."""


def by_rule(
    rule: str, jobs: Sequence[TraceJob], gpus: int, window_s: tuple[float, float] | None
) -> Quotas:
    """Return the quotas of a rule.

    - ``p98``: the 98th percentile over time of each project's use if no job ever waited, at least
      its largest job.
    - ``p98-scaled``: the same, scaled down to the pool if the sum is larger.
    - ``equal``: the pool in equal parts, the remainder to the projects that came first.

    Args:
        window_s: The time span of the demand; None for all of it.
    """
    if rule == "equal":
        projects = list(dict.fromkeys(job.project for job in jobs))
        part, rest = divmod(gpus, len(projects))
        return {name: part + (i < rest) for i, name in enumerate(projects)}
    quotas = percentiles(jobs, window_s)
    return scaled(quotas, gpus) if rule == "p98-scaled" else quotas


def percentiles(jobs: Sequence[TraceJob], window_s: tuple[float, float] | None) -> Quotas:
    """Return the 98th percentile of each project's demand, at least its largest job."""
    steps: dict[str, list[tuple[float, int]]] = defaultdict(list)
    largest: dict[str, int] = defaultdict(int)
    for job in jobs:
        steps[job.project] += [
            (job.submit_s, job.gpus),
            (job.submit_s + job.duration_s, -job.gpus),
        ]
        largest[job.project] = max(largest[job.project], job.gpus)
    span = window_s or (
        jobs[0].submit_s,
        max(job.submit_s + job.duration_s for job in jobs),
    )
    return {name: max(_percentile(steps[name], span), largest[name]) for name in steps}


def _percentile(steps: list[tuple[float, int]], span: tuple[float, float]) -> int:
    """Return the smallest value that the demand does not exceed in 98 % of the time."""
    first, last = span
    seconds: dict[int, float] = defaultdict(float)
    level, now = 0, first
    for at, change in [*sorted(steps), (last, 0)]:
        until = min(max(at, first), last)
        seconds[level] += max(0.0, until - now)
        now, level = max(now, until), level + change
    left = PERCENTILE * sum(seconds.values())
    for demand in sorted(seconds):
        left -= seconds[demand]
        if left <= 0:
            return demand
    return max(seconds)


def scaled(quotas: Mapping[str, int], gpus: int) -> Quotas:
    """Return integer quotas in proportion that fit the pool, by largest remainder.

    >>> scaled({"a": 6, "b": 3, "c": 3}, 8)
    {'a': 4, 'b': 2, 'c': 2}
    >>> scaled({"a": 2, "b": 1}, 8)
    {'a': 2, 'b': 1}
    """
    whole = sum(quotas.values())
    if whole <= gpus:
        return dict(quotas)
    parts = {name: divmod(quota * gpus, whole) for name, quota in quotas.items()}
    rest = gpus - sum(part for part, _ in parts.values())
    first = sorted(parts, key=lambda name: -parts[name][1])[:rest]
    return {name: part + (name in first) for name, (part, _) in parts.items()}


def from_file(path: Path, jobs: Sequence[TraceJob]) -> Quotas:
    """Return the quotas of a CSV file ``project,quota``, which must name all the trace's projects.

    Raises:
        InvalidInput: The file is invalid.
    """
    found: Quotas = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.reader(file, strict=True)
            if next(reader, None) != ["project", "quota"]:
                raise InvalidInput(f"{path}, line 1 must be project,quota")
            for cells in reader:
                if cells:
                    name, quota = _row(path, reader.line_num, cells)
                    found[name] = quota
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(f"{path} cannot be read: {error}; give a CSV in UTF-8") from error
    projects = list(dict.fromkeys(job.project for job in jobs))
    for name in projects:
        if name not in found:
            raise InvalidInput(f"{path} lacks the project {name} of the trace; add its quota")
    return {name: found[name] for name in projects}


def _row(path: Path, line: int, cells: Sequence[str]) -> tuple[str, int]:
    if len(cells) != 2:
        raise InvalidInput(f"{path}, line {line} has {len(cells)} cells; write project,quota")
    if not cells[1].isdecimal():
        raise InvalidInput(
            f"{path}, line {line}, column quota must be a whole number from 0; it is {cells[1]!r}",
            field="quota",
        )
    return cells[0], int(cells[1])
