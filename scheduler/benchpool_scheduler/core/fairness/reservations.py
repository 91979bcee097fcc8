"""Reservations: GPUs kept for a project for a time, by raising its guaranteed quota.

While a reservation is active, quota and limit of its project and all ancestors are raised by it.
Jobs above the quotas of other projects are preempted when the project needs the GPUs (R4, R15).
Until then they may use idle GPUs (R9). No project loses its own quota, since a reservation that
does not fit beside all quotas is rejected. Non-preemptible jobs must stay within the quota without
the reservation, since they could outlast it (R8).

These functions are pure. They return the active reservations, the raised projects, the next change,
and reservations that do not fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from benchpool_scheduler.core.model import Project, ProjectName


@dataclass(frozen=True, slots=True)
class QuotaReservation:
    """GPUs for a project between two instants, in epoch seconds.

    Attributes:
        name: Unique name shown to users.
    """

    name: str
    project: ProjectName
    gpus: int
    begins_s: float
    ends_s: float

    def stands(self, now_s: float) -> bool:
        """Return whether it is active at an instant. The end is exclusive."""
        return self.begins_s <= now_s < self.ends_s


def standing(
    reservations: Iterable[QuotaReservation], now_s: float
) -> tuple[QuotaReservation, ...]:
    """Return the reservations that are active at an instant.

    >>> paper = QuotaReservation("paper", ProjectName("vision"), 4, 100.0, 200.0)
    >>> [len(standing([paper], at)) for at in (99.0, 100.0, 200.0)]
    [0, 1, 0]
    """
    return tuple(it for it in reservations if it.stands(now_s))


def next_edge_s(reservations: Iterable[QuotaReservation], now_s: float) -> float | None:
    """Return the next instant after ``now_s`` at which a reservation begins or ends, or None."""
    edges = (at for it in reservations for at in (it.begins_s, it.ends_s))
    return min((at for at in edges if at > now_s), default=None)


def raised(
    projects: Sequence[Project], reservations: Iterable[QuotaReservation]
) -> tuple[Project, ...]:
    """Return the projects with quotas and limits raised by these reservations.

    Weights are unchanged, even if they are derived from the quota (R5).

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
    """A reservation with which the guarantees exceed the pool.

    Attributes:
        quotas: GPUs guaranteed to all projects without reservations. None if one quota is
        unlimited.
        reserved: GPUs of all reservations that are active then.
        gpus: GPUs that train may use.
        at_s: First instant of the excess.
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
    """Return the first reservation that does not fit beside all quotas, or None.

    Args:
        gpus: GPUs that train may use.
        now_s: Reservations that have ended by then are ignored.

    >>> vision = Project(ProjectName("vision"), quota=6)
    >>> paper = QuotaReservation("paper", vision.name, 4, 100.0, 200.0)
    >>> unfit([vision], [paper], 8, 0.0)
    Unfit(name='paper', quotas=6, reserved=4, gpus=8, at_s=100.0)
    >>> unfit([vision], [paper], 8, 200.0)
    """
    tops = [it.quota for it in projects if it.parent is None]
    quotas = None if None in tops else sum(quota or 0 for quota in tops)
    coming = [it for it in reservations if it.ends_s > now_s]
    # The sum is largest at the begin of a reservation.
    for at in sorted({max(it.begins_s, now_s) for it in coming}):
        there = standing(coming, at)
        reserved = sum(it.gpus for it in there)
        if quotas is None or quotas + reserved > gpus:
            last = max(there, key=lambda it: (it.begins_s, it.name))
            return Unfit(last.name, quotas, reserved, gpus, at)
    return None
