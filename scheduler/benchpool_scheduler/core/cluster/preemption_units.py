"""Preemption units of running jobs: surplus workers of elastic jobs, and smallest gangs (R18).

They are kept between passes. The units of a project are sorted into *buckets* of equal priority,
kind and size. Inside a bucket the order never changes with time, since all units lose progress at
the same rate. A pass reads the buckets merged, cheapest loss first, and tracks its position.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Container, Iterator, Sequence
from itertools import groupby, islice
from typing import NamedTuple

from benchpool_scheduler.core.capacity.assignment import Departure
from benchpool_scheduler.core.jobs.amounts import NOTHING, Amounts
from benchpool_scheduler.core.jobs.job_info import JobInfo
from benchpool_scheduler.core.jobs.tree import Tree
from benchpool_scheduler.core.model import JobFacts, NodeName, Policy, Worker

EQUALS = 8
"""Limit on the jobs of equal loss that are compared."""


class PreemptionUnit:
    """Piece that can be taken from a job at once: one surplus worker, or its smallest gang.

    Attributes:
        amounts: Amounts that it holds.
        is_gang: It is the smallest gang of its job. Taking it stops the job.
        protected_until_s: End of its protection (R19). Infinite while the hourly bound is reached.
        fresh: This pass has started it, so that taking it stops no running work.
        gone: It was preempted in this pass.
        claimed: It was released by the present attempt.
    """

    __slots__ = (
        "amounts",
        "claimed",
        "fresh",
        "gone",
        "info",
        "is_gang",
        "protected_until_s",
        "workers",
    )

    def __init__(
        self,
        info: JobInfo,
        workers: tuple[Worker, ...],
        *,
        is_gang: bool,
        fresh: bool = False,
        protected_until_s: float = float("-inf"),
    ) -> None:
        self.info = info
        self.workers = workers
        self.is_gang = is_gang
        self.fresh = fresh
        self.protected_until_s = protected_until_s
        self.amounts: Amounts = info.request.times(len(workers))
        self.gone = self.claimed = False

    @property
    def departures(self) -> list[Departure]:
        """Return the departures that the next holder of its GPUs must wait for."""
        job = self.info.job.id
        return [Departure(job, worker) for worker in self.workers]


def lost_gpu_s(job: JobFacts, gpus: float, policy: Policy, now_s: float) -> float:
    """Return the cost of stopping a job: unsaved progress and a restart, in GPU-seconds (R18)."""
    return (job.unsaved_at(now_s) + policy.restart_s) * gpus


class UnitBucket(NamedTuple):
    """Key of units whose order is constant in time: equal job priority, kind and size."""

    priority: int
    is_gang: bool
    young: bool
    size: int


Entry = tuple[float, int, int, PreemptionUnit]
"""Unsaved progress at clock zero, negated age, position in the job, and the unit."""


class PreemptionUnits:
    """Preemption units of every project, by project age.

    Attributes:
        buckets: Units by project and bucket, in the order in which they would be taken.
        on_node: Units with workers on a node, unordered.
        protected: Protected smallest gangs, by project.
    """

    def __init__(self, tree: Tree, policy: Policy) -> None:
        self.tree = tree
        self.policy = policy
        self.buckets: dict[int, dict[UnitBucket, list[Entry]]] = {}
        self.on_node: dict[NodeName, dict[PreemptionUnit, None]] = {}
        self.protected: dict[int, dict[PreemptionUnit, None]] = {}
        self._of: dict[int, list[PreemptionUnit]] = {}
        self._waking: list[tuple[float, int, PreemptionUnit]] = []

    def put(self, info: JobInfo) -> None:
        """Split a running preemptible job into units."""
        units = units_of(info, info.job.held, protected_until_s=self._protected_until_s(info))
        self._of[info.age] = units
        for position, unit in enumerate(units):
            for worker in unit.workers:
                self.on_node.setdefault(worker.node, {})[unit] = None
            if unit.is_gang and unit.protected_until_s > float("-inf"):
                self._protect(unit)
            else:
                self._insert(unit, position)

    def drop(self, info: JobInfo) -> None:
        """Remove the units of a job whose workers changed or that no longer runs."""
        for position, unit in enumerate(self._of.pop(info.age, ())):
            for node in dict.fromkeys(worker.node for worker in unit.workers):
                here = self.on_node[node]
                here.pop(unit, None)
                if not here:
                    del self.on_node[node]
            index = info.branch.index
            if unit in self.protected.get(index, ()):
                del self.protected[index][unit]
                if not self.protected[index]:
                    del self.protected[index]
            else:
                self._remove(unit, position)

    def release(self, now_s: float) -> None:
        """End the protections that have expired (R19)."""
        while self._waking and self._waking[0][0] <= now_s:
            _, _, unit = heapq.heappop(self._waking)
            index = unit.info.branch.index
            if unit in self.protected.get(index, ()):
                del self.protected[index][unit]
                if not self.protected[index]:
                    del self.protected[index]
                self._insert(unit, len(self._of[unit.info.age]) - 1)

    @property
    def next_release_s(self) -> float | None:
        """Return when the next protection ends, or None."""
        while self._waking and self._waking[0][2] not in self.protected.get(
            self._waking[0][2].info.branch.index, ()
        ):
            heapq.heappop(self._waking)
        return self._waking[0][0] if self._waking else None

    def lost(self, unit: PreemptionUnit, now_s: float) -> float:
        """Return the cost of taking the unit, in GPU-seconds (R18)."""
        if unit.fresh or not unit.is_gang:
            return 0.0
        gpus = unit.amounts.gpus / 1000
        return lost_gpu_s(unit.info.job, gpus, self.policy, now_s)

    def merged(self, index: int, now_s: float) -> Iterator[tuple[Order, PreemptionUnit]]:
        """Yield a project's units with their order, in the order in which they would be taken."""
        return heapq.merge(
            *(self._ordered(bucket, now_s) for bucket in self.buckets.get(index, {}).values()),
            key=lambda entry: entry[0],
        )

    def smallest_first(self, index: int) -> Iterator[PreemptionUnit]:
        """Yield a project's units by priority, surplus before gangs, then small before large."""
        buckets = self.buckets.get(index, {})
        for bucket in sorted(buckets):
            yield from (unit for _, _, _, unit in buckets[bucket])

    def cheapest(self, index: int, but: Container[PreemptionUnit] = ()) -> Iterator[PreemptionUnit]:
        """Yield the first smallest gang of each bucket of a project, and a few with equal loss.

        Args:
            but: Units to skip. Units that are gone are skipped too.
        """
        for bucket, entries in self.buckets.get(index, {}).items():
            if bucket.is_gang:
                able = (e for e in entries if not e[3].gone and e[3] not in but)
                for _, equal in islice(groupby(able, key=lambda entry: entry[0]), 1):
                    yield from (entry[3] for entry in islice(equal, EQUALS))

    def _ordered(
        self, bucket: Sequence[Entry], now_s: float
    ) -> Iterator[tuple[Order, PreemptionUnit]]:
        for position, (_, _, _, unit) in enumerate(bucket):
            yield order_of(unit, self.lost(unit, now_s), position), unit

    def gives_below(self, info: JobInfo, *, by_youth: bool) -> bool:
        """Return whether the job's project has units that rank below the job.

        Args:
            by_youth: As for ``goes_after``.
        """
        priority = info.spec.priority
        by_youth = by_youth and not info.long
        return any(
            bucket.priority < priority
            or (by_youth and bucket.priority == priority and not bucket.young)
            for bucket in self.buckets.get(info.branch.index, ())
        )

    def held_below(self, info: JobInfo) -> Amounts:
        """Return the preemptible amounts held by jobs of lower priority in the job's project."""
        found = NOTHING
        for bucket, entries in self.buckets.get(info.branch.index, {}).items():
            if bucket.priority < info.spec.priority:
                for _, _, _, unit in entries:
                    if not unit.gone and not unit.claimed:
                        found += unit.amounts
        return found

    def of(self, info: JobInfo) -> list[PreemptionUnit]:
        """Return all units of a running job, its smallest gang last."""
        return self._of.get(info.age, [])

    @property
    def long_running(self) -> bool:
        """Return whether any unit belongs to a long-running job."""
        return any(not bucket.young for buckets in self.buckets.values() for bucket in buckets)

    def _protected_until_s(self, info: JobInfo) -> float:
        job, policy = info.job, self.policy
        if policy.has_paid_enough(job):
            return float("inf")
        least = self.tree.min_runtime_s(info.branch, policy.min_runtime_s)
        return job.as_of_s - job.ran_s + least if least > 0 else float("-inf")

    def _protect(self, unit: PreemptionUnit) -> None:
        self.protected.setdefault(unit.info.branch.index, {})[unit] = None
        if unit.protected_until_s < float("inf"):
            heapq.heappush(self._waking, (unit.protected_until_s, id(unit), unit))

    def _insert(self, unit: PreemptionUnit, position: int) -> None:
        buckets = self.buckets.setdefault(unit.info.branch.index, {})
        insort(buckets.setdefault(_bucket(unit), []), _entry(unit, position))

    def _remove(self, unit: PreemptionUnit, position: int) -> None:
        buckets = self.buckets[unit.info.branch.index]
        bucket = buckets[_bucket(unit)]
        del bucket[bisect_left(bucket, _entry(unit, position)[:3], key=lambda entry: entry[:3])]
        if not bucket:
            del buckets[_bucket(unit)]
            if not buckets:
                del self.buckets[unit.info.branch.index]


Order = tuple[int, bool, bool, int, float, int, int]


def order_of(unit: PreemptionUnit, lost: float, position: int = 0) -> Order:
    """Return the sort key of a unit inside a project. The smallest key is taken first.

    Among long-running jobs the largest goes first: pausing one job frees GPUs for many (R18).
    """
    info = unit.info
    large = unit.amounts.gpus if info.long and unit.is_gang else 0
    return info.spec.priority, unit.is_gang, not info.long, -large, lost, -info.age, position


def goes_after(one: JobInfo, other: JobInfo, *, by_youth: bool) -> bool:
    """Return whether a job ranks below another job of its project (R15).

    Lower priority ranks below. At equal priority, long-running jobs rank below with ``by_youth``.

    Args:
        by_youth: The project is above its quota.
    """
    if one.job.spec.priority != other.job.spec.priority:
        return one.job.spec.priority < other.job.spec.priority
    return by_youth and one.long and not other.long


def units_of(
    info: JobInfo,
    workers: Sequence[Worker],
    *,
    fresh: bool = False,
    protected_until_s: float = float("-inf"),
) -> list[PreemptionUnit]:
    """Split a job into units: surplus workers singly, youngest first, then its smallest gang."""
    least = info.least
    surplus = [
        PreemptionUnit(info, (worker,), is_gang=False, fresh=fresh)
        for worker in reversed(workers[least:])
    ]
    core = PreemptionUnit(
        info, tuple(workers[:least]), is_gang=True, fresh=fresh, protected_until_s=protected_until_s
    )
    return [*surplus, core]


def _bucket(unit: PreemptionUnit) -> UnitBucket:
    return UnitBucket(unit.info.spec.priority, unit.is_gang, not unit.info.long, unit.amounts.gpus)


def _entry(unit: PreemptionUnit, position: int) -> Entry:
    unsaved = unit.info.job.unsaved_at(0.0) if unit.is_gang else 0.0
    return unsaved, -unit.info.age, position, unit
