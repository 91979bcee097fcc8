"""Reservations: GPUs that are kept for a project for a time, as a guaranteed quota that is raised.

While one stands, its project and all above it have that much more quota and limit. Whoever else
holds more than its own quota gives way when the project asks (R4, R15), and until then may use what
is idle (R9). Nobody's own quota pays, since what does not fit beside all quotas is refused before.
Work that may not be paused stays within the quota as it is without: it would outlast the time (R8).

Pure: which stand at an instant, what projects have then, when that changes, and what does not fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from benchpool_scheduler.core.model import Project, ProjectName


@dataclass(frozen=True, slots=True)
class QuotaReservation:
    """GPUs for a project from one instant until another, in seconds of the epoch.

    Attributes:
        name: What people call it; no two have the same.
    """

    name: str
    project: ProjectName
    gpus: int
    begins_s: float
    ends_s: float

    def stands(self, now_s: float) -> bool:
        """Tell whether it stands at an instant; at its end it does not any more."""
        return self.begins_s <= now_s < self.ends_s


def standing(
    reservations: Iterable[QuotaReservation], now_s: float
) -> tuple[QuotaReservation, ...]:
    """Return those that stand at an instant.

    >>> paper = QuotaReservation("paper", ProjectName("vision"), 4, 100.0, 200.0)
    >>> [len(standing([paper], at)) for at in (99.0, 100.0, 200.0)]
    [0, 1, 0]
    """
    return tuple(it for it in reservations if it.stands(now_s))


def next_edge_s(reservations: Iterable[QuotaReservation], now_s: float) -> float | None:
    """Return the next instant after one at which a reservation begins or ends; None for none."""
    edges = (at for it in reservations for at in (it.begins_s, it.ends_s))
    return min((at for at in edges if at > now_s), default=None)


def raised(
    projects: Sequence[Project], reservations: Iterable[QuotaReservation]
) -> tuple[Project, ...]:
    """Return the projects as they are while these reservations stand.

    Weights stay what they were, also where they follow from the quota (R5).

    >>> vision = Project(ProjectName("vision"), quota=2, limit=4)
    >>> paper = QuotaReservation("paper", vision.name, 4, 100.0, 200.0)
    >>> (after,) = raised([vision], [paper])
    >>> after.quota, after.limit, after.reserved
    (6, 8, 4)
    """
    more = _by_project(projects, reservations)
    return tuple(_raised(it, more[it.name]) if more[it.name] else it for it in projects)


def _raised(project: Project, gpus: int) -> Project:
    if project.quota is None:
        return project
    return replace(
        project,
        quota=project.quota + gpus,
        limit=None if project.limit is None else project.limit + gpus,
        reserved=gpus,
    )


def _by_project(
    projects: Sequence[Project], reservations: Iterable[QuotaReservation]
) -> Counter[ProjectName]:
    """Return how many GPUs are reserved in and below each project."""
    parents: Mapping[ProjectName, ProjectName | None] = {it.name: it.parent for it in projects}
    more: Counter[ProjectName] = Counter()
    for one in reservations:
        at: ProjectName | None = one.project
        seen: set[ProjectName] = set()
        while at is not None and at not in seen:
            more[at] += one.gpus
            seen.add(at)
            at = parents.get(at)
    return more


@dataclass(frozen=True, slots=True)
class Unfit:
    """A reservation with which more would be promised than there is.

    Attributes:
        quotas: GPUs that all projects are guaranteed without any reservation; None: one of them is
            guaranteed all. ``reserved``: those of all reservations that stand then.
        at_s: The first instant at which it is so.
    """

    name: str
    quotas: int | None
    reserved: int
    gpus: int
    at_s: float


def unfit(
    projects: Sequence[Project],
    reservations: Sequence[QuotaReservation],
    gpus: int,
    now_s: float,
) -> Unfit | None:
    """Return the first reservation that does not fit beside all quotas; None where all do.

    Args:
        gpus: Those of all that train may use. ``now_s``: what is over by then does not count.

    >>> vision = Project(ProjectName("vision"), quota=6)
    >>> paper = QuotaReservation("paper", vision.name, 4, 100.0, 200.0)
    >>> unfit([vision], [paper], 8, 0.0)
    Unfit(name='paper', quotas=6, reserved=4, gpus=8, at_s=100.0)
    >>> unfit([vision], [paper], 8, 200.0)
    """
    tops = [it.quota for it in projects if it.parent is None]
    quotas = None if None in tops else sum(quota or 0 for quota in tops)
    coming = [it for it in reservations if it.ends_s > now_s]
    # The sum is largest where one begins.
    for at in sorted({max(it.begins_s, now_s) for it in coming}):
        there = standing(coming, at)
        reserved = sum(it.gpus for it in there)
        if quotas is None or quotas + reserved > gpus:
            last = max(there, key=lambda it: (it.begins_s, it.name))
            return Unfit(last.name, quotas, reserved, gpus, at)
    return None
