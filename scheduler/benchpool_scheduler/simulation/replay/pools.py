"""The pool of a replay, and the worker counts of trace jobs on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchpool_scheduler.core.model import GpuId, Node, NodeName
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.phrases import count
from benchpool_scheduler.simulation.replay.trace import TraceJob


@dataclass(frozen=True, slots=True)
class ReplayPool:
    """GPUs on nodes; a pool without nodes is one node with all GPUs."""

    nodes: int
    gpus_per_node: int

    @property
    def gpus(self) -> int:
        """Return the number of all GPUs."""
        return self.nodes * self.gpus_per_node

    def as_nodes(self) -> tuple[Node, ...]:
        """Return the nodes as the core sees them."""
        return tuple(
            Node(NodeName(f"n{n}"), tuple(GpuId(f"n{n}/{g}") for g in range(self.gpus_per_node)))
            for n in range(self.nodes)
        )

    def workers_of(self, job: TraceJob) -> int:
        """Return the number of workers of a job on this pool.

        If the trace has no number, it is the fewest equal workers that fit a node: a trace counts
        GPUs, and a job that is larger than a node ran on several.

        Raises:
            InvalidInput: The job can never run here.
        """
        if job.gpus > self.gpus:
            raise _too_large(job, f"the pool has {self.gpus}", "--gpus or --nodes")
        if job.workers is not None:
            workers, each = job.workers, job.gpus // job.workers
            if each > self.gpus_per_node or workers > self.nodes * (self.gpus_per_node // each):
                raise _too_large(
                    job,
                    f"{count(workers, 'worker')} of {each} {'does' if workers == 1 else 'do'} not "
                    f"fit {self.nodes} nodes of {self.gpus_per_node}",
                    "--nodes or --gpus-per-node",
                )
            return workers
        for workers in range(-(-job.gpus // self.gpus_per_node), self.nodes + 1):
            if job.gpus % workers == 0:
                return workers
        raise _too_large(
            job,
            f"they cannot be split into equal workers on {self.nodes} nodes of "
            f"{self.gpus_per_node}",
            "--nodes or --gpus-per-node",
        )


def _too_large(job: TraceJob, why: str, option: str) -> InvalidInput:
    return InvalidInput(
        f"the job on line {job.line} of the trace requests {job.gpus} GPUs, but {why}, so it can "
        f"never run; raise {option}",
        numbers={"line": job.line, "gpus": job.gpus},
    )


def check(jobs: Sequence[TraceJob], pool: ReplayPool) -> list[int]:
    """Return the workers of every job; see ``ReplayPool.workers_of``."""
    return [pool.workers_of(job) for job in jobs]
