"""Candidates for preemption in a pass: the kept units that are left, and the pass's own starts.

The kept units of a project are merged only as far as attempts read them. Units at the front that
are gone for good are never read again.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from math import gcd

from benchpool_scheduler.core.capacity.free_capacity import FreeCapacity, NodeCapacity
from benchpool_scheduler.core.cluster.preemption_units import (
    Order,
    PreemptionUnit,
    PreemptionUnits,
    goes_after,
    order_of,
)
from benchpool_scheduler.core.jobs.amounts import WHOLE_GPU, Amounts
from benchpool_scheduler.core.jobs.job_info import JobInfo, Requirements
from benchpool_scheduler.core.model import NodeName, Worker


class VictimCandidates:
    """Preemption units as one pass sees them.

    Args:
        protected: Include protected gangs, for explanations (R19).
    """

    def __init__(self, units: PreemptionUnits, now_s: float, *, protected: bool = False) -> None:
        self.units = units
        self.now_s = now_s
        self.protected = protected
        self._sources: dict[int, _Source] = {}
        self._fresh: dict[int, list[tuple[Order, PreemptionUnit]]] = {}
        self._started = 0
        self._by_project: dict[NodeName, dict[int, int]] = {}
        self._most: dict[tuple[int, int | None], int] = {}
        self._lowest: dict[int, PreemptionUnit] = {}
        self._below: dict[tuple[int, int, bool, bool], bool] = {}
        self._freest: dict[object, list[NodeCapacity]] = {}

    def projects(self) -> list[int]:
        """Return the projects with units to take."""
        found = {*self.units.buckets, *self._fresh}
        if self.protected:
            found |= set(self.units.protected)
        return sorted(found)

    def on_nodes(self) -> Container[NodeName]:
        """Return the nodes with units to take."""
        fresh = (c for entries in self._fresh.values() for _, c in entries if not c.gone)
        started = {worker.node for unit in fresh for worker in unit.workers}
        return started.union(self.units.on_node) if started else self.units.on_node

    def freest(self, capacity: FreeCapacity, requirements: Requirements) -> Iterator[NodeCapacity]:
        """Yield the nodes that a job may use and that have units to take, the freest first.

        With ``protected``, only nodes of protected gangs are returned. An explanation follows a
        failed attempt, which has tried all other nodes.
        """
        if not self.protected:
            giving = self.on_nodes()
            yield from (
                n for n in capacity.freest(requirements, releasing=True) if n.node.name in giving
            )
            return
        where = (requirements.models, requirements.only, requirements.barred)
        known = self._freest.get(where)
        if known is None:  # nothing changes between two explanations
            names = (name for name in self._protected_nodes if capacity.may_use(requirements, name))
            nodes = [capacity.by_name[name] for name in names]
            nodes.sort(key=lambda node: (-node.free_gpus(releasing=True), node.order))
            known = self._freest[where] = nodes
        yield from known

    @cached_property
    def _protected_nodes(self) -> set[NodeName]:
        held = (unit for units in self.units.protected.values() for unit in units)
        return {worker.node for unit in held for worker in unit.workers}

    def lost(self, unit: PreemptionUnit) -> float:
        """Return the cost of taking the unit, in GPU-seconds (R18)."""
        return self.units.lost(unit, self.now_s)

    def most(self, index: int, *, below: int | None = None) -> int:
        """Return the most GPUs that a project could give, in thousandths.

        Args:
            below: Count only jobs with a priority below this one.
        """
        fresh = self._fresh.get(index, ())
        return self._kept_most(index, below) + sum(
            c.amounts.gpus for _, c in fresh if _lower(c.info.spec.priority, below)
        )

    def _kept_most(self, index: int, below: int | None) -> int:
        """Return the same for units that ran before this pass, whether taken since or not."""
        known = self._most.get((index, below))
        if known is None:
            buckets = self.units.buckets.get(index, {}).items()
            known = sum(b.size * len(found) for b, found in buckets if _lower(b.priority, below))
            if self.protected:
                cores = self.units.protected.get(index, ())
                known += sum(c.amounts.gpus for c in cores if _lower(c.info.spec.priority, below))
            self._most[index, below] = known
        return known

    @cached_property
    def overshoot(self) -> int:
        """Return by how much a branch can give more than its surplus, since units are not split."""
        sizes = {bucket.size for buckets in self.units.buckets.values() for bucket in buckets}
        if self.protected:
            held = self.units.protected.values()
            sizes |= {unit.amounts.gpus for units in held for unit in units}
        return max(sizes, default=0) - gcd(*sizes, WHOLE_GPU) if sizes else 0

    def add_fresh(self, info: JobInfo, workers: Sequence[Worker], *, is_gang: bool) -> None:
        """Add a plain start of this pass, which an attempt may still take."""
        if info.spec.preemptible:
            unit = PreemptionUnit(info, tuple(workers), is_gang=is_gang, fresh=True)
            entries = self._fresh.setdefault(info.branch.index, [])
            self._started += 1
            insort(entries, (order_of(unit, 0.0, -self._started), unit))

    def remove_fresh(self, unit: PreemptionUnit) -> None:
        """Remove a start of this pass that was taken."""
        entries = self._fresh[unit.info.branch.index]
        entries[:] = [entry for entry in entries if entry[1] is not unit]

    def lowest(self, index: int) -> PreemptionUnit | None:
        """Return a unit of a project with the lowest rank, or None."""
        known = self._lowest.get(index)
        if known is None or known.gone:
            kept = (
                entry[-1]
                for bucket in self.units.buckets.get(index, {}).values()
                for entry in bucket
            )
            cores = self.units.protected.get(index, ()) if self.protected else ()
            fresh = (unit for _, unit in self._fresh.get(index, ()))
            able = (unit for unit in chain(kept, cores, fresh) if not unit.gone)
            known = min(able, key=lambda unit: unit.info.rank, default=None)
            if known is None:
                return None
            self._lowest[index] = known
        return known

    def gives_below(self, info: JobInfo, *, by_youth: bool) -> bool:
        """Return whether the job's project has units that rank below the job.

        Args:
            by_youth: As for ``goes_after``.
        """
        key = info.branch.index, info.spec.priority, info.long, by_youth
        below = self._below.get(key)
        if below is None:
            below = self._below[key] = self.units.gives_below(info, by_youth=by_youth)
        if below:
            return True
        fresh = self._fresh.get(info.branch.index, ())
        return any(goes_after(unit.info, info, by_youth=by_youth) for _, unit in fresh)

    def held_below(self, info: JobInfo) -> Amounts:
        """Return the preemptible amounts held by jobs of lower priority in the job's project."""
        found = self.units.held_below(info)
        for _, unit in self._fresh.get(info.branch.index, ()):
            if unit.info.spec.priority < info.spec.priority and not unit.claimed:
                found += unit.amounts
        return found

    def reader(
        self,
        index: int,
        here: Mapping[int, list[PreemptionUnit]] | None,
        useful: Callable[[PreemptionUnit], bool],
        *,
        smallest: bool = False,
    ) -> Callable[[], PreemptionUnit | None]:
        """Return a function that returns a project's useful units one by one, in order.

        Args:
            here: Only these units, by project (``on_node_by_project``).
            useful: Filter of the units.
            smallest: Return small units before large ones.
        """
        if here is not None:
            order = self._size if smallest else self.order
            entries = iter(sorted(here[index], key=order))
        elif smallest:
            entries = self.units.smallest_first(index)
        else:
            entries = self._all(index)

        def next_chunk() -> PreemptionUnit | None:
            able = (c for c in entries if not c.gone and not c.claimed and useful(c))
            return next(able, None)

        return next_chunk

    def surplus_of(self, gang: PreemptionUnit) -> list[PreemptionUnit]:
        """Return the surplus units of a job that are not taken yet."""
        fresh = self._fresh.get(gang.info.branch.index, ())
        others = chain(
            self.units.of(gang.info), (unit for _, unit in fresh if unit.info is gang.info)
        )
        return [c for c in others if not c.is_gang and not c.gone and not c.claimed]

    def cheapest(self, index: int, but: Container[PreemptionUnit] = ()) -> Iterator[PreemptionUnit]:
        """Yield the smallest gangs of a project that lose least, of each priority and size.

        Args:
            but: Units to skip.
        """
        return self.units.cheapest(index, but)

    def on_node_by_project(self, where: NodeName) -> dict[int, list[PreemptionUnit]]:
        """Return the units to take on a node, by project."""
        found: dict[int, list[PreemptionUnit]] = {}
        for unit in self.on_node(where):
            found.setdefault(unit.info.branch.index, []).append(unit)
        return found

    def on_node(self, where: NodeName) -> list[PreemptionUnit]:
        """Return the units to take on a node, unordered."""
        kept = [
            unit
            for unit in self.units.on_node.get(where, ())
            if not unit.gone and (self.protected or not self._is_protected(unit))
        ]
        fresh = [
            unit
            for entries in self._fresh.values()
            for _, unit in entries
            if not unit.gone and any(worker.node == where for worker in unit.workers)
        ]
        return kept + fresh

    def by_project(self, where: NodeName) -> dict[int, int]:
        """Return the most GPUs of a node that each project could give."""
        known = self._by_project.get(where)
        if known is None or not self.protected:
            known = self._by_project[where] = {}
            for unit in self.on_node(where):
                here = sum(len(worker.gpus) for worker in unit.workers if worker.node == where)
                index = unit.info.branch.index
                known[index] = known.get(index, 0) + here
        return known

    def _is_protected(self, unit: PreemptionUnit) -> bool:
        return unit in self.units.protected.get(unit.info.branch.index, ())

    def order(self, unit: PreemptionUnit) -> Order:
        """Return the sort key of a unit inside its project. The smallest key is taken first."""
        return order_of(unit, self.lost(unit), -len(unit.workers))

    def _size(self, unit: PreemptionUnit) -> tuple[int, bool, int, Order]:
        return unit.info.spec.priority, unit.is_gang, unit.amounts.gpus, self.order(unit)

    def _all(self, index: int) -> Iterator[PreemptionUnit]:
        """Yield the kept and the fresh units of a project in their common order."""
        source = self._sources.get(index)
        if source is None:
            source = self._sources[index] = _Source(self._merged(index))
        fresh = iter(list(self._fresh.get(index, ())))
        started = next(fresh, None)
        for order, unit in source:
            while started is not None and started[0] < order:
                yield started[1]
                started = next(fresh, None)
            yield unit
        while started is not None:
            yield started[1]
            started = next(fresh, None)

    def _merged(self, index: int) -> Iterator[tuple[Order, PreemptionUnit]]:
        kept = self.units.merged(index, self.now_s)
        if not self.protected:
            return kept
        cores = [(self.order(c), c) for c in self.units.protected.get(index, ())]
        return iter(sorted([*kept, *cores], key=lambda entry: entry[0]))


def _lower(priority: int, below: int | None) -> bool:
    return below is None or priority < below


class _Source:
    """Merged units of one project, read on demand."""

    def __init__(self, merged: Iterator[tuple[Order, PreemptionUnit]]) -> None:
        self._merged = merged
        self._read: list[tuple[Order, PreemptionUnit]] = []
        self._start = 0

    def __iter__(self) -> Iterator[tuple[Order, PreemptionUnit]]:
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
