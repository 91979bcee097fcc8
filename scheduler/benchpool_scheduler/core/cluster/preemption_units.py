"""What running jobs could give: a surplus worker of an elastic job, or a whole core (R18).

Kept between passes. The chunks of a project are sorted into *bands* of equal priority, kind and
size; inside a band the order never changes with time, since all lose progress at the same rate.
A pass reads the bands merged, cheapest loss first, and remembers how far it has consumed them.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from benchpool_scheduler.core.jobs.amounts import Amounts
from benchpool_scheduler.core.jobs.job_info import Work
from benchpool_scheduler.core.jobs.tree import Tree
from benchpool_scheduler.core.model import Job, NodeName, Policy, Worker


class Chunk:
    """What can be taken from a job in one piece: one surplus worker, or its whole core.

    Attributes:
        amounts: What it holds.
        free_until_s: Until then it is protected (R19); infinite while the hourly bound is reached.
        fresh: It was started in this very pass, so nobody is stopped by taking it.
        gone: It was let go for good in this pass. ``paying``: it was, by the claim at hand.
    """

    __slots__ = (
        "amounts",
        "core",
        "fresh",
        "gone",
        "paying",
        "protected_until_s",
        "work",
        "workers",
    )

    def __init__(
        self,
        work: Work,
        workers: tuple[Worker, ...],
        *,
        core: bool,
        fresh: bool = False,
        protected_until_s: float = float("-inf"),
    ) -> None:
        self.work = work
        self.workers = workers
        self.core = core
        self.fresh = fresh
        self.protected_until_s = protected_until_s
        self.amounts: Amounts = work.need.times(len(workers))
        self.gone = self.paying = False


def lost_gpu_s(job: Job, gpus: float, policy: Policy, now_s: float) -> float:
    """Return what stopping costs: progress since the last checkpoint, and a restart (R18)."""
    return (job.unsaved_at(now_s) + policy.restart_s) * gpus


class Band(NamedTuple):
    """Chunks between which time changes nothing: one job priority, one kind, one size."""

    priority: int
    core: bool
    young: bool
    size: int


Entry = tuple[float, int, int, Chunk]
"""Unsaved progress at clock zero, age negated, position in the job, the chunk."""


class Chunks:
    """What every project could give, by project age.

    Attributes:
        bands: By project, then by band: its chunks, the first to be given up first.
        on_node: The chunks with workers on a node, in no order.
        protected: By project, cores that may not be stopped yet.
    """

    def __init__(self, tree: Tree, policy: Policy) -> None:
        self.tree = tree
        self.policy = policy
        self.bands: dict[int, dict[Band, list[Entry]]] = {}
        self.on_node: dict[NodeName, dict[Chunk, None]] = {}
        self.protected: dict[int, dict[Chunk, None]] = {}
        self._of: dict[int, list[Chunk]] = {}
        self._waking: list[tuple[float, int, Chunk]] = []

    def put(self, work: Work) -> None:
        """Cut a running preemptible job into what it could give."""
        chunks = chunks_of(work, work.job.held, protected_until_s=self._protected_until_s(work))
        self._of[work.age] = chunks
        for position, chunk in enumerate(chunks):
            for worker in chunk.workers:
                self.on_node.setdefault(worker.node, {})[chunk] = None
            if chunk.core and chunk.protected_until_s > float("-inf"):
                self._protect(chunk)
            else:
                self._insert(chunk, position)

    def drop(self, work: Work) -> None:
        """The job's workers changed, or it does not run any more."""
        for position, chunk in enumerate(self._of.pop(work.age, ())):
            for node in dict.fromkeys(worker.node for worker in chunk.workers):
                here = self.on_node[node]
                here.pop(chunk, None)
                if not here:
                    del self.on_node[node]
            index = work.branch.index
            if chunk in self.protected.get(index, ()):
                del self.protected[index][chunk]
                if not self.protected[index]:
                    del self.protected[index]
            else:
                self._remove(chunk, position)

    def release(self, now_s: float) -> None:
        """Let the protection end whose time has come (R19)."""
        while self._waking and self._waking[0][0] <= now_s:
            _, _, chunk = heapq.heappop(self._waking)
            index = chunk.work.branch.index
            if chunk in self.protected.get(index, ()):
                del self.protected[index][chunk]
                if not self.protected[index]:
                    del self.protected[index]
                self._insert(chunk, len(self._of[chunk.work.age]) - 1)

    @property
    def next_release_s(self) -> float | None:
        """Return when the next protection ends, None when none does."""
        while self._waking and self._waking[0][2] not in self.protected.get(
            self._waking[0][2].work.branch.index, ()
        ):
            heapq.heappop(self._waking)
        return self._waking[0][0] if self._waking else None

    def lost(self, chunk: Chunk, now_s: float) -> float:
        """Return the GPU seconds that taking the chunk costs (R18)."""
        if chunk.fresh or not chunk.core:
            return 0.0
        gpus = chunk.amounts.gpus / 1000
        return lost_gpu_s(chunk.work.job, gpus, self.policy, now_s)

    def merged(self, index: int, now_s: float) -> Iterator[tuple[Order, Chunk]]:
        """Yield a project's chunks with their order, the first to be given up first."""
        return heapq.merge(
            *(self._ordered(band, now_s) for band in self.bands.get(index, {}).values()),
            key=lambda entry: entry[0],
        )

    def smallest_first(self, index: int) -> Iterator[Chunk]:
        """Yield a project's chunks by priority, surplus before cores, then small before large."""
        bands = self.bands.get(index, {})
        for band in sorted(bands):
            yield from (chunk for _, _, _, chunk in bands[band])

    def cheapest(self, index: int) -> Iterator[Chunk]:
        """Yield the first whole job of each band of a project that is not gone."""
        for band, entries in self.bands.get(index, {}).items():
            if band.core:
                yield from islice((e[3] for e in entries if not e[3].gone), 1)

    def _ordered(self, band: Sequence[Entry], now_s: float) -> Iterator[tuple[Order, Chunk]]:
        for position, (_, _, _, chunk) in enumerate(band):
            yield order_of(chunk, self.lost(chunk, now_s), position), chunk

    def gives_below(self, work: Work, *, by_youth: bool) -> bool:
        """Tell whether the job's project could give something that goes after it."""
        priority = work.job.priority
        by_youth = by_youth and not work.long
        return any(
            band.priority < priority or (by_youth and band.priority == priority and not band.young)
            for band in self.bands.get(work.branch.index, ())
        )

    def of(self, work: Work) -> list[Chunk]:
        """Return all that a running job could give, its core last."""
        return self._of.get(work.age, [])

    @property
    def long_running(self) -> bool:
        """Tell whether anything that could be given has run long."""
        return any(not band.young for bands in self.bands.values() for band in bands)

    def _protected_until_s(self, work: Work) -> float:
        job, policy = work.job, self.policy
        if job.preemptions_last_hour >= policy.preemptions_per_hour:
            return float("inf")
        least = self.tree.min_runtime_s(work.branch, policy.min_runtime_s)
        return job.as_of_s - job.ran_s + least if least > 0 else float("-inf")

    def _protect(self, chunk: Chunk) -> None:
        self.protected.setdefault(chunk.work.branch.index, {})[chunk] = None
        if chunk.protected_until_s < float("inf"):
            heapq.heappush(self._waking, (chunk.protected_until_s, id(chunk), chunk))

    def _insert(self, chunk: Chunk, position: int) -> None:
        bands = self.bands.setdefault(chunk.work.branch.index, {})
        insort(bands.setdefault(_band(chunk), []), _entry(chunk, position))

    def _remove(self, chunk: Chunk, position: int) -> None:
        bands = self.bands[chunk.work.branch.index]
        band = bands[_band(chunk)]
        del band[bisect_left(band, _entry(chunk, position)[:3], key=lambda entry: entry[:3])]
        if not band:
            del bands[_band(chunk)]
            if not bands:
                del self.bands[chunk.work.branch.index]


Order = tuple[int, bool, bool, int, float, int, int]


def order_of(chunk: Chunk, lost: float, position: int = 0) -> Order:
    """Return what is given up first inside a project: the smallest.

    Of long-running jobs the largest goes first: room for many is made by pausing one (R18).
    """
    work = chunk.work
    large = chunk.amounts.gpus if work.long and chunk.core else 0
    return work.job.priority, chunk.core, not work.long, -large, lost, -work.age, position


def goes_after(one: Work, other: Work, *, by_youth: bool) -> bool:
    """Tell whether a job gives way to another of its project: by priority, then by youth (R15).

    Args:
        by_youth: The project is above its quota, so that what has run long is below younger work
            of its own priority.
    """
    if one.job.priority != other.job.priority:
        return one.job.priority < other.job.priority
    return by_youth and one.long and not other.long


def chunks_of(
    work: Work,
    workers: Sequence[Worker],
    *,
    fresh: bool = False,
    protected_until_s: float = float("-inf"),
) -> list[Chunk]:
    """Cut a job into what it could give: surplus workers singly, youngest first, then its core."""
    least = work.job.min_workers
    surplus = [
        Chunk(work, (worker,), core=False, fresh=fresh) for worker in reversed(workers[least:])
    ]
    core = Chunk(
        work, tuple(workers[:least]), core=True, fresh=fresh, protected_until_s=protected_until_s
    )
    return [*surplus, core]


def _band(chunk: Chunk) -> Band:
    return Band(chunk.work.job.priority, chunk.core, not chunk.work.long, chunk.amounts.gpus)


def _entry(chunk: Chunk, position: int) -> Entry:
    unsaved = chunk.work.job.unsaved_at(0.0) if chunk.core else 0.0
    return unsaved, -chunk.work.age, position, chunk
