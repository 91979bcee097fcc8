"""What a pass may still take from whom: the kept chunks, less those gone, and its own starts.

The kept chunks of a project are merged only as far as claims read them; what is gone for good at
the front is never looked at again.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from math import gcd

from benchpool_scheduler.core.capacity.free_capacity import NodeRoom, Room
from benchpool_scheduler.core.cluster.preemption_units import (
    Chunk,
    Chunks,
    Order,
    goes_after,
    order_of,
)
from benchpool_scheduler.core.jobs.amounts import WHOLE_GPU
from benchpool_scheduler.core.jobs.job_info import Fit, Work
from benchpool_scheduler.core.model import NodeName, Worker


class Givers:
    """One pass's view of the chunks.

    Args:
        protected: Take protected cores as if they were not, for explanations (R19).
    """

    def __init__(self, chunks: Chunks, now_s: float, *, protected: bool = False) -> None:
        self.chunks = chunks
        self.now_s = now_s
        self.protected = protected
        self._sources: dict[int, _Source] = {}
        self._fresh: dict[int, list[tuple[Order, Chunk]]] = {}
        self._by_project: dict[NodeName, dict[int, int]] = {}
        self._most: dict[tuple[int, int | None], int] = {}
        self._lowest: dict[int, Chunk] = {}
        self._below: dict[tuple[int, int, bool, bool], bool] = {}
        self._freest: dict[object, list[NodeRoom]] = {}

    def projects(self) -> list[int]:
        """Return the projects that could give something."""
        found = {*self.chunks.bands, *self._fresh}
        if self.protected:
            found |= set(self.chunks.protected)
        return sorted(found)

    def on_nodes(self) -> Container[NodeName]:
        """Return the nodes on which something could be taken."""
        fresh = (c for entries in self._fresh.values() for _, c in entries if not c.gone)
        started = {worker.node for chunk in fresh for worker in chunk.workers}
        return started.union(self.chunks.on_node) if started else self.chunks.on_node

    def freest(self, room: Room, fit: Fit) -> Iterator[NodeRoom]:
        """Yield nodes that a job may use and something could be taken on, the freest first.

        With protected cores only their nodes: explanations come after a claim that has looked at
        all others in vain.
        """
        if not self.protected:
            giving = self.on_nodes()
            yield from (n for n in room.freest(fit, soon=True) if n.node.name in giving)
            return
        where = (fit.models, fit.only, fit.barred)
        known = self._freest.get(where)
        if known is None:  # between two explanations nothing changes
            names = (name for name in self._protected_nodes if room.may_use(fit, name))
            nodes = [room.by_name[name] for name in names]
            nodes.sort(key=lambda node: (-node.free_gpus(soon=True), node.order))
            known = self._freest[where] = nodes
        yield from known

    @cached_property
    def _protected_nodes(self) -> set[NodeName]:
        held = (chunk for chunks in self.chunks.protected.values() for chunk in chunks)
        return {worker.node for chunk in held for worker in chunk.workers}

    def lost(self, chunk: Chunk) -> float:
        """Return the GPU seconds that taking the chunk costs (R18)."""
        return self.chunks.lost(chunk, self.now_s)

    def most(self, index: int, *, below: int | None = None) -> int:
        """Return the GPUs, in thousandths, that a project could give at most.

        Args:
            below: Only what jobs of lower priority hold.
        """
        fresh = self._fresh.get(index, ())
        return self._kept_most(index, below) + sum(
            c.amounts.gpus for _, c in fresh if _lower(c.work.job.priority, below)
        )

    def _kept_most(self, index: int, below: int | None) -> int:
        """Return the same of what ran before this pass, whether it was taken since or not."""
        known = self._most.get((index, below))
        if known is None:
            bands = self.chunks.bands.get(index, {}).items()
            known = sum(b.size * len(found) for b, found in bands if _lower(b.priority, below))
            if self.protected:
                cores = self.chunks.protected.get(index, ())
                known += sum(c.amounts.gpus for c in cores if _lower(c.work.job.priority, below))
            self._most[index, below] = known
        return known

    @cached_property
    def overshoot(self) -> int:
        """Return by how much what a branch gives can pass its surplus: chunks are not cut."""
        sizes = {band.size for bands in self.chunks.bands.values() for band in bands}
        if self.protected:
            held = self.chunks.protected.values()
            sizes |= {chunk.amounts.gpus for chunks in held for chunk in chunks}
        return max(sizes, default=0) - gcd(*sizes, WHOLE_GPU) if sizes else 0

    def add_fresh(self, work: Work, workers: Sequence[Worker], *, core: bool) -> None:
        """A plain start of this pass could still be given up for a claim."""
        if work.job.preemptible:
            chunk = Chunk(work, tuple(workers), core=core, fresh=True)
            entries = self._fresh.setdefault(work.branch.index, [])
            insort(entries, (order_of(chunk, 0.0, -len(entries)), chunk))

    def remove_fresh(self, chunk: Chunk) -> None:
        """A start of this pass was given up."""
        entries = self._fresh[chunk.work.branch.index]
        entries[:] = [entry for entry in entries if entry[1] is not chunk]

    def lowest(self, index: int) -> Chunk | None:
        """Return something of a project that nothing else it could give goes after."""
        known = self._lowest.get(index)
        if known is None or known.gone:
            kept = (
                entry[-1] for band in self.chunks.bands.get(index, {}).values() for entry in band
            )
            cores = self.chunks.protected.get(index, ()) if self.protected else ()
            fresh = (chunk for _, chunk in self._fresh.get(index, ()))
            able = (chunk for chunk in chain(kept, cores, fresh) if not chunk.gone)
            known = min(able, key=lambda chunk: chunk.work.rank, default=None)
            if known is None:
                return None
            self._lowest[index] = known
        return known

    def gives_below(self, work: Work, *, by_youth: bool) -> bool:
        """Tell whether the job's project could give something that goes after it."""
        key = work.branch.index, work.job.priority, work.long, by_youth
        below = self._below.get(key)
        if below is None:
            below = self._below[key] = self.chunks.gives_below(work, by_youth=by_youth)
        if below:
            return True
        fresh = self._fresh.get(work.branch.index, ())
        return any(goes_after(chunk.work, work, by_youth=by_youth) for _, chunk in fresh)

    def reader(
        self,
        index: int,
        here: Mapping[int, list[Chunk]] | None,
        useful: Callable[[Chunk], bool],
        *,
        smallest: bool = False,
    ) -> Callable[[], Chunk | None]:
        """Return what hands out a project's useful chunks one by one, the first to go first.

        Args:
            here: Only these, by project (``on_node_by_project``).
            smallest: Small ones before large ones.
        """
        if here is not None:
            entries = iter(sorted(here[index], key=self._order))
        elif smallest:
            entries = self.chunks.smallest_first(index)
        else:
            entries = self._all(index)

        def next_chunk() -> Chunk | None:
            able = (c for c in entries if not c.gone and not c.paying and useful(c))
            return next(able, None)

        return next_chunk

    def surplus_of(self, core: Chunk) -> list[Chunk]:
        """Return what else a job holds that nobody has taken yet, besides its core."""
        others = self.chunks.of(core.work)
        if core.fresh:
            fresh = self._fresh.get(core.work.branch.index, ())
            others = [chunk for _, chunk in fresh if chunk.work is core.work]
        return [c for c in others if not c.core and not c.gone and not c.paying]

    def cheapest(self, index: int) -> list[Chunk]:
        """Return of each priority and size the whole job of a project that loses least."""
        return list(self.chunks.cheapest(index))

    def on_node_by_project(self, where: NodeName) -> dict[int, list[Chunk]]:
        """Return what could be taken on a node, by project."""
        found: dict[int, list[Chunk]] = {}
        for chunk in self.on_node(where):
            found.setdefault(chunk.work.branch.index, []).append(chunk)
        return found

    def on_node(self, where: NodeName) -> list[Chunk]:
        """Return what could be taken on a node, in no order."""
        kept = [
            chunk
            for chunk in self.chunks.on_node.get(where, ())
            if not chunk.gone and (self.protected or not self._is_protected(chunk))
        ]
        fresh = [
            chunk
            for entries in self._fresh.values()
            for _, chunk in entries
            if not chunk.gone and any(worker.node == where for worker in chunk.workers)
        ]
        return kept + fresh

    def by_project(self, where: NodeName) -> dict[int, int]:
        """Return how many GPUs of a node each project could give at most."""
        known = self._by_project.get(where)
        if known is None or not self.protected:
            known = self._by_project[where] = {}
            for chunk in self.on_node(where):
                here = sum(len(worker.gpus) for worker in chunk.workers if worker.node == where)
                index = chunk.work.branch.index
                known[index] = known.get(index, 0) + here
        return known

    def _is_protected(self, chunk: Chunk) -> bool:
        return chunk in self.chunks.protected.get(chunk.work.branch.index, ())

    def _order(self, chunk: Chunk) -> Order:
        return order_of(chunk, self.lost(chunk), -len(chunk.workers))

    def _all(self, index: int) -> Iterator[Chunk]:
        """Yield the kept and the fresh chunks of a project in their common order."""
        source = self._sources.get(index)
        if source is None:
            source = self._sources[index] = _Source(self._merged(index))
        fresh = iter(list(self._fresh.get(index, ())))
        started = next(fresh, None)
        for order, chunk in source:
            while started is not None and started[0] < order:
                yield started[1]
                started = next(fresh, None)
            yield chunk
        while started is not None:
            yield started[1]
            started = next(fresh, None)

    def _merged(self, index: int) -> Iterator[tuple[Order, Chunk]]:
        kept = self.chunks.merged(index, self.now_s)
        if not self.protected:
            return kept
        cores = [(self._order(c), c) for c in self.chunks.protected.get(index, ())]
        return iter(sorted([*kept, *cores], key=lambda entry: entry[0]))


def _lower(priority: int, below: int | None) -> bool:
    return below is None or priority < below


class _Source:
    """The merged chunks of one project, read as far as anybody has asked."""

    def __init__(self, merged: Iterator[tuple[Order, Chunk]]) -> None:
        self._merged = merged
        self._read: list[tuple[Order, Chunk]] = []
        self._start = 0

    def __iter__(self) -> Iterator[tuple[Order, Chunk]]:
        read = self._read
        while self._start < len(read) and read[self._start][1].gone:
            self._start += 1
        position = self._start
        while True:
            if position == len(read):
                entry = next(self._merged, None)
                if entry is None:
                    return
                read.append(entry)
            yield read[position]
            position += 1
