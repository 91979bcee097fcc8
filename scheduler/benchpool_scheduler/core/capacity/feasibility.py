"""Whether a job could ever start: in an empty pool, with nobody else's work in the way (R22)."""

from __future__ import annotations

from benchpool_scheduler.core.capacity.free_capacity import Room
from benchpool_scheduler.core.capacity.placement import fits
from benchpool_scheduler.core.jobs.amounts import first_over, within
from benchpool_scheduler.core.jobs.job_info import Work
from benchpool_scheduler.core.jobs.tree import Tree


def possible(work: Work, empty: Room, tree: Tree) -> bool:
    """Tell whether the smallest gang could run if the pool were empty."""
    return (
        beyond_limit(work, tree) is None
        and beyond_quota(work, tree) is None
        and fits(work, work.job.min_workers, empty, soon=False)
    )


def beyond_limit(work: Work, tree: Tree) -> tuple[int, int] | None:
    """Return project and resource whose limit is smaller than the job alone, lowest first."""
    for index in reversed(work.branch.path):
        if (over := first_over(work.core, tree.branches[index].limit)) is not None:
            return index, over
    return None


def beyond_quota(work: Work, tree: Tree) -> tuple[int, int] | None:
    """Return project and resource whose quota is smaller than the non-preemptible job alone."""
    if work.job.preemptible:
        return None
    for index in reversed(work.branch.path):
        quota = tree.branches[index].quota
        if not within(work.core, quota):
            return index, first_over(work.core, quota) or 0
    return None
