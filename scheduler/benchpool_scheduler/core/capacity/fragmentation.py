"""Fragmentation measure: how much a worker on a node spoils for the usual workers (R12).

Free GPUs can be unusable: too few together, too small a part of one, or without CPUs or memory. How
much of a node is usable depends on the workers to come. The *usual* kinds of workers are therefore
the kinds that hold GPUs in the pool. The worth of a node is the number of GPUs that it could fill
with workers of one kind alone, on average over the kinds. A worker goes to the node whose worth
falls least.

The idea of measuring fragmentation against the typical workload is from Weng et al., "Beware of
Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent" (USENIX ATC
2023). There a node counts as useful for a kind of worker as soon as one worker fits. Here it counts
for as many workers as its CPUs and memory allow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from benchpool_scheduler.core.capacity.node_capacity import NodeCapacity
from benchpool_scheduler.core.capacity.shared_gpus import Part
from benchpool_scheduler.core.jobs.amounts import WHOLE_GPU
from benchpool_scheduler.core.jobs.job_info import Requirements

MOST_KINDS = 64
"""Limit on the kinds of workers compared. The most frequent kinds count."""

Kind = tuple[int, int, int, int, int, tuple[str, ...]]
"""GPUs, part, project of the part, CPUs, memory and models of one worker."""

ALWAYS: Kind = (1, 0, -1, 0, 0, ())
"""Kind that is usual in every pool: one whole GPU. It keeps parts from opening a GPU needlessly."""

MOST_REMEMBERED = 200_000
"""Limit on node states with a cached worth."""

State = tuple[str | None, bool, int, tuple[Part, ...], int | None, int | None]
"""GPU model, shared, free whole GPUs, rests of GPUs in use in parts, free CPUs and memory."""

WorkerShape = tuple[int, int, int]
"""GPUs, part and project of the part of one worker."""


class UsualWorkers:
    """Kinds of workers in the pool, and the worth of nodes to them.

    All kinds weigh the same. A rare kind that finds no place loses as much as a frequent one, and
    the worths do not change with every start.
    """

    def __init__(self) -> None:
        self._counts: Counter[Kind] = Counter()
        self._stale = False
        self._version = 0
        self._kinds = [ALWAYS]
        self._open: dict[tuple[str | None, bool], dict[WorkerShape, list[tuple[int, int]]]] = {}
        self._worth: dict[State, int] = {}

    def note(self, requirements: Requirements, workers: int) -> None:
        """Count workers with these requirements. A negative number removes them."""
        if not requirements.gpus and not requirements.part:
            return
        kind = (
            requirements.gpus,
            requirements.part,
            requirements.owner,
            requirements.cpus,
            requirements.memory,
            requirements.models,
        )
        before = self._counts[kind]
        after = before + workers
        if after:
            self._counts[kind] = after
        else:
            del self._counts[kind]
        if len(self._counts) > MOST_KINDS:
            self._stale |= before.bit_length() != after.bit_length()
        else:
            self._stale |= not before or not after

    def version(self) -> int:
        """Update the usual kinds. Return the number of updates so far.

        If there are too many kinds, those count whose number of workers has the most binary digits.
        """
        if self._stale:
            self._stale = False
            digits = sorted((-count.bit_length(), kind) for kind, count in self._counts.items())
            kinds = sorted({ALWAYS, *(kind for _, kind in digits[:MOST_KINDS])})
            if kinds != self._kinds:
                self._kinds = kinds
                self._version += 1
                self._open.clear()
                self._worth.clear()
        return self._version

    def loss(self, state: State, requirements: Requirements) -> int | None:
        """Return how much one worker would spoil on a node, or None if it does not fit now."""
        return min((loss for loss, _ in self._ways(state, requirements)), default=None)

    def rest(self, state: State, requirements: Requirements) -> int | None:
        """Return the rest on the best GPU for a part, or None if no part fits now."""
        return min(self._ways(state, requirements), default=(0, None))[1]

    def _ways(self, state: State, requirements: Requirements) -> Iterator[tuple[int, int]]:
        """Yield what each way to place a worker spoils, and the rest on the GPU that it takes."""
        model, shared, free, rests, cpus, memory = state
        if free < requirements.gpus or (requirements.part and not shared):
            return
        if cpus is not None and requirements.cpus:
            if cpus < requirements.cpus:
                return
            cpus -= requirements.cpus
        if memory is not None and requirements.memory:
            if memory < requirements.memory:
                return
            memory -= requirements.memory
        before = self._worth_of(state)
        if not requirements.part:
            after = self._worth_of((model, shared, free - requirements.gpus, rests, cpus, memory))
            yield 2 * (before - after), WHOLE_GPU
            return
        for rest in dict.fromkeys(
            r for owner, r in rests if owner == requirements.owner and r >= requirements.part
        ):
            left = list(rests)
            left.remove((requirements.owner, rest))
            new = _with(left, (requirements.owner, rest - requirements.part))
            after = self._worth_of((model, shared, free, new, cpus, memory))
            yield 2 * (before - after), rest
        if free:
            new = _with(rests, (requirements.owner, WHOLE_GPU - requirements.part))
            after = self._worth_of((model, shared, free - 1, new, cpus, memory))
            yield 2 * (before - after) + 1, WHOLE_GPU  # on a tie, prefer not to open a GPU

    def _worth_of(self, state: State) -> int:
        worth = self._worth.get(state)
        if worth is None:
            if len(self._worth) >= MOST_REMEMBERED:
                self._worth.clear()
            worth = self._worth[state] = self._work_out(state)
        return worth

    def _work_out(self, state: State) -> int:
        """Return the sum, over the usual kinds, of the GPUs that each kind alone could fill."""
        model, shared, free, rests, cpus, memory = state
        worth = 0
        for (gpus, part, owner), needs in self._usual(model, shared).items():
            each = part or gpus * WHOLE_GPU
            most = free * WHOLE_GPU if part else free // gpus * each
            for project, rest in rests if part else ():
                if rest >= part and project == owner:
                    most += rest
            for need_cpus, need_memory in needs if most else ():
                fill = most
                if cpus is not None and need_cpus:
                    fill = min(fill, cpus * each // need_cpus)
                if memory is not None and need_memory:
                    fill = min(fill, memory * each // need_memory)
                if fill > 0:
                    worth += fill
        return worth

    def _usual(self, model: str | None, shared: bool) -> dict[WorkerShape, list[tuple[int, int]]]:
        """Return the CPUs and memory of the usual kinds that may use a node, by worker shape."""
        key = (model, shared)
        if key not in self._open:
            kinds: dict[WorkerShape, list[tuple[int, int]]] = {}
            for gpus, part, owner, cpus, memory, models in self._kinds:
                if (shared or not part) and (not models or model in models):
                    kinds.setdefault((gpus, part, owner), []).append((cpus, memory))
            self._open[key] = kinds
        return self._open[key]


def state_of(node: NodeCapacity) -> State:
    """Return everything about a node that decides its present worth."""
    return (
        node.node.gpu_model,
        node.node.shared,
        node.free,
        node.parts.owned(node.blocked(releasing=False)) if node.parts.in_use else (),
        node.unused[0] if node.cpus_bound else None,
        node.unused[1] if node.memory_bound else None,
    )


def _with(rests: Sequence[Part], new: Part) -> tuple[Part, ...]:
    return tuple(sorted([*rests, new])) if new[1] else tuple(rests)
