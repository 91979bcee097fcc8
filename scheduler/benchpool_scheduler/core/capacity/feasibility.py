"""Whether a job could run in an empty pool (R22)."""

from __future__ import annotations

from benchpool_scheduler.core.capacity.free_capacity import FreeCapacity
from benchpool_scheduler.core.capacity.placement import fits
from benchpool_scheduler.core.jobs.amounts import first_over, within
from benchpool_scheduler.core.jobs.job_info import JobInfo
from benchpool_scheduler.core.jobs.tree import Tree


def possible(info: JobInfo, empty: FreeCapacity, tree: Tree) -> bool:
    """Return whether the smallest gang could run in an empty pool."""
    return (
        beyond_limit(info, tree) is None
        and beyond_quota(info, tree) is None
        and fits(info, info.least, empty, releasing=False)
    )


def beyond_limit(info: JobInfo, tree: Tree) -> tuple[int, int] | None:
    """Return the lowest project and the resource whose limit is smaller than the job, or None."""
    for index in reversed(info.branch.path):
        if (over := first_over(info.min_gang, tree.branches[index].limit)) is not None:
            return index, over
    return None


def beyond_quota(info: JobInfo, tree: Tree) -> tuple[int, int] | None:
    """Return the lowest project and the resource whose quota is too small, or None.

    Only a non-preemptible job needs to fit into the quota.
    """
    if info.spec.preemptible:
        return None
    for index in reversed(info.branch.path):
        quota = tree.branches[index].firm_quota
        if not within(info.min_gang, quota):
            return index, first_over(info.min_gang, quota) or 0
    return None
