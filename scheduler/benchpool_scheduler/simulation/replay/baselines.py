"""Baseline policies that a replay is compared with.

``static``: a fixed partition for every project. Inside it the order is first come, first served,
and a job that does not fit is skipped. ``fifo``: one queue for all, strictly first come, first
served; the first job that does not fit blocks the jobs behind it. Neither policy ever preempts.

On nodes, a worker is placed on the node with the fewest sufficient free GPUs (best fit). The
partitions of ``static`` are numbers of GPUs, independent of nodes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.simulation.replay.engine import ReplayClock, Run
from benchpool_scheduler.simulation.replay.pools import ReplayPool


class Places:
    """Free GPUs by node."""

    def __init__(self, pool: ReplayPool) -> None:
        self.free = [pool.gpus_per_node] * pool.nodes
        self.total = pool.gpus
        self._held: dict[int, list[int]] = {}

    def take(self, run: Run) -> bool:
        """Assign GPUs to all workers of the job, or to none, and return whether they fit."""
        if self.total < run.job.gpus:
            return False
        each = run.job.gpus // run.workers
        nodes: list[int] = []
        for _ in range(run.workers):
            node = self._best(each)
            if node is None:
                for taken in nodes:
                    self.free[taken] += each
                return False
            self.free[node] -= each
            nodes.append(node)
        self.total -= run.job.gpus
        self._held[run.index] = nodes
        return True

    def _best(self, each: int) -> int | None:
        fitting = [(free, node) for node, free in enumerate(self.free) if free >= each]
        return min(fitting)[1] if fitting else None

    def give_back(self, run: Run) -> None:
        """Free the GPUs of the job."""
        for node in self._held.pop(run.index):
            self.free[node] += run.job.gpus // run.workers
        self.total += run.job.gpus


class Fifo:
    """One shared queue."""

    wake_s = None

    def __init__(self, pool: ReplayPool) -> None:
        self.places = Places(pool)
        self.queue: deque[Run] = deque()

    @property
    def waiting(self) -> bool:
        """Return whether anything waits."""
        return bool(self.queue)

    def submitted(self, run: Run, now_s: float) -> None:
        """Record a new job."""
        self.queue.append(run)

    def ended(self, run: Run, now_s: float) -> None:
        """Free the GPUs of an ended job."""
        self.places.give_back(run)

    def decide(self, clock: ReplayClock, now_s: float) -> None:
        """Start jobs from the front of the queue until one does not fit."""
        while self.queue and self.places.take(self.queue[0]):
            clock.start(self.queue.popleft(), now_s)


class Static:
    """A fixed partition for every project."""

    wake_s = None

    def __init__(self, pool: ReplayPool, quotas: Mapping[str, int], runs: Sequence[Run]) -> None:
        """Create the partitions.

        Raises:
            InvalidInput: The partitions do not fit the pool, or a job does not fit its partition.
        """
        whole = sum(quotas.values())
        if whole > pool.gpus:
            raise InvalidInput(
                f"the partitions of static add up to {whole} GPUs, but the pool has {pool.gpus}; "
                "use --quota-rule p98-scaled or more GPUs",
                numbers={"partitions": whole, "gpus": pool.gpus},
            )
        for run in runs:
            part = quotas[run.job.project]
            if run.job.gpus > part:
                raise InvalidInput(
                    f"the job on line {run.job.line} of the trace requests {run.job.gpus} GPUs, "
                    f"but the partition of its project {run.job.project} has {part}; add GPUs",
                    numbers={"line": run.job.line, "gpus": run.job.gpus, "partition": part},
                )
        self.places = Places(pool)
        self.free = dict(quotas)
        self.queues: dict[str, list[Run]] = {name: [] for name in quotas}
        self._changed: dict[str, None] = {}

    @property
    def waiting(self) -> bool:
        """Return whether a job waits in a partition that has changed."""
        return any(self.queues[name] for name in self._changed)

    def submitted(self, run: Run, now_s: float) -> None:
        """Record a new job."""
        self.queues[run.job.project].append(run)
        self._changed[run.job.project] = None

    def ended(self, run: Run, now_s: float) -> None:
        """Free the GPUs of an ended job in its partition."""
        self.places.give_back(run)
        self.free[run.job.project] += run.job.gpus
        if len(self.places.free) == 1:
            self._changed[run.job.project] = None
        else:  # on nodes, the fit may change for every project
            self._changed.update(dict.fromkeys(self.queues))

    def decide(self, clock: ReplayClock, now_s: float) -> None:
        """Start the jobs that fit, by submission."""
        for name in self._changed:
            self.queues[name] = [
                run for run in self.queues[name] if not self._start(run, clock, now_s)
            ]
        self._changed = {}

    def _start(self, run: Run, clock: ReplayClock, now_s: float) -> bool:
        name = run.job.project
        if self.free[name] < run.job.gpus or not self.places.take(run):
            return False
        self.free[name] -= run.job.gpus
        clock.start(run, now_s)
        return True
