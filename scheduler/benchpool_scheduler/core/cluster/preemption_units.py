"""What running jobs could give: surplus workers of elastic jobs, and smallest gangs (R18).

Kept between passes. The units of a project are sorted into *buckets* of equal priority, kind and
size; inside a bucket the order never changes with time, since all lose progress at the same rate.
A pass reads the buckets merged, cheapest loss first, and remembers how far it has consumed them.
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
"""Of jobs that lose equally, at most so many are looked at."""


class PreemptionUnit:
    """What can be taken from a job in one piece: one surplus worker, or its smallest gang.

    Attributes:
        amounts: What it holds.
        is_gang: It is the smallest gang of its job, whose end stops the job.
        protected_until_s: Until then it is protected (R19); infinite while the hourly bound is
            reached.
        fresh: It was started in this very pass, so nobody is stopped by taking it.
        gone: It was let go for good in this pass. ``claimed``: it was, by the attempt at hand.
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
        """Return what whoever gets its GPUs must wait for."""
        job = self.info.job.id
        return [Departure(job, worker) for worker in self.workers]


def lost_gpu_s(job: JobFacts, gpus: float, policy: Policy, now_s: float) -> float:
    """Return what stopping costs: progress since the last checkpoint, and a restart (R18)."""
    return (job.unsaved_at(now_s) + policy.restart_s) * gpus


class UnitBucket(NamedTuple):
    """Units between which time changes nothing: one job priority, one kind, one size."""

    priority: int
    is_gang: bool
    young: bool
    size: int


Entry = tuple[float, int, int, PreemptionUnit]
"""Unsaved progress at clock zero, age negated, position in the job, the unit."""


class PreemptionUnits:
    """What every project could give, by project age.

    Attributes:
        buckets: By project, then by band: its units, the first to be given up first.
        on_node: The units with workers on a node, in no order.
        protected: By project, cores that may not be stopped yet.
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
        """Cut a running preemptible job into what it could give."""
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
        """The job's workers changed, or it does not run any more."""
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
        """Let the protection end whose time has come (R19)."""
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
        """Return when the next protection ends, None when none does."""
        while self._waking and self._waking[0][2] not in self.protected.get(
            self._waking[0][2].info.branch.index, ()
        ):
            heapq.heappop(self._waking)
        return self._waking[0][0] if self._waking else None

    def lost(self, unit: PreemptionUnit, now_s: float) -> float:
        """Return the GPU seconds that taking the unit costs (R18)."""
        if unit.fresh or not unit.is_gang:
            return 0.0
        gpus = unit.amounts.gpus / 1000
        return lost_gpu_s(unit.info.job, gpus, self.policy, now_s)

    def merged(self, index: int, now_s: float) -> Iterator[tuple[Order, PreemptionUnit]]:
        """Yield a project's units with their order, the first to be given up first."""
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
        """Yield the first whole job of each band of a project, and some that lose as much.

        Args:
            but: Not these; nor what is gone.
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
        """Tell whether the job's project could give something that goes after it."""
        priority = info.spec.priority
        by_youth = by_youth and not info.long
        return any(
            bucket.priority < priority
            or (by_youth and bucket.priority == priority and not bucket.young)
            for bucket in self.buckets.get(info.branch.index, ())
        )

    def held_below(self, info: JobInfo) -> Amounts:
        """Return what jobs of lower priority in the job's project hold and could give."""
        found = NOTHING
        for bucket, entries in self.buckets.get(info.branch.index, {}).items():
            if bucket.priority < info.spec.priority:
                for _, _, _, unit in entries:
                    if not unit.gone and not unit.claimed:
                        found += unit.amounts
        return found

    def of(self, info: JobInfo) -> list[PreemptionUnit]:
        """Return all that a running job could give, its smallest gang last."""
        return self._of.get(info.age, [])

    @property
    def long_running(self) -> bool:
        """Tell whether anything that could be given has run long."""
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
    """Return what is given up first inside a project: the smallest.

    Of long-running jobs the largest goes first: room for many is made by pausing one (R18).
    """
    info = unit.info
    large = unit.amounts.gpus if info.long and unit.is_gang else 0
    return info.spec.priority, unit.is_gang, not info.long, -large, lost, -info.age, position


def goes_after(one: JobInfo, other: JobInfo, *, by_youth: bool) -> bool:
    """Tell whether a job gives way to another of its project: by priority, then by youth (R15).

    Args:
        by_youth: The project is above its quota, so that what has run long is below younger work
            of its own priority.
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
    """Cut a job into units: surplus workers singly, youngest first, then its smallest gang."""
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
