"""Whether a job could ever start: in an empty pool, with nobody else's work in the way (R22)."""

from __future__ import annotations

from benchpool_scheduler.core.capacity.free_capacity import FreeCapacity
from benchpool_scheduler.core.capacity.placement import fits
from benchpool_scheduler.core.jobs.amounts import first_over, within
from benchpool_scheduler.core.jobs.job_info import JobInfo
from benchpool_scheduler.core.jobs.tree import Tree


def possible(info: JobInfo, empty: FreeCapacity, tree: Tree) -> bool:
    """Tell whether the smallest gang could run if the pool were empty."""
    return (
        beyond_limit(info, tree) is None
        and beyond_quota(info, tree) is None
        and fits(info, info.least, empty, releasing=False)
    )


def beyond_limit(info: JobInfo, tree: Tree) -> tuple[int, int] | None:
    """Return project and resource whose limit is smaller than the job alone, lowest first."""
    for index in reversed(info.branch.path):
        if (over := first_over(info.min_gang, tree.branches[index].limit)) is not None:
            return index, over
    return None


def beyond_quota(info: JobInfo, tree: Tree) -> tuple[int, int] | None:
    """Return project and resource whose quota is smaller than the non-preemptible job alone."""
    if info.spec.preemptible:
        return None
    for index in reversed(info.branch.path):
        quota = tree.branches[index].firm_quota
        if not within(info.min_gang, quota):
            return index, first_over(info.min_gang, quota) or 0
    return None
