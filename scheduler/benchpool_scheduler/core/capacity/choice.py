"""Choice of the GPUs of a node for a worker (R1, R12)."""

from __future__ import annotations

from benchpool_scheduler.core.capacity.bits import lowest, members
from benchpool_scheduler.core.capacity.links import choose
from benchpool_scheduler.core.capacity.node_capacity import NodeCapacity
from benchpool_scheduler.core.jobs.amounts import WHOLE_GPU
from benchpool_scheduler.core.jobs.job_info import Requirements
from benchpool_scheduler.core.model import Worker


def choose_worker(
    node: NodeCapacity, requirements: Requirements, rest: int | None = None
) -> Worker:
    """Return one more worker with its GPUs: free GPUs first, then GPUs of leaving jobs.

    Among free GPUs, links and sockets decide (R12).

    Args:
        rest: For a part of a GPU: thousandths left on the GPU to take. WHOLE_GPU means an unused
        GPU.
    """
    if requirements.part:
        at = _choose_shared(node, requirements, rest)
        return Worker(node.node.name, (node.node.gpus[at],), requirements.part)
    free = node.free_set()
    chosen = choose(node.node.links, node.node.sockets, 0, free, requirements.gpus)
    if (missing := requirements.gpus - chosen.bit_count()) > 0:
        later = node.free_set_releasing() & ~free
        chosen = choose(node.node.links, node.node.sockets, chosen, later, missing)
    gpus = node.node.gpus
    return Worker(node.node.name, tuple(gpus[at] for at in members(chosen)))


def _choose_shared(node: NodeCapacity, requirements: Requirements, wanted: int | None) -> int:
    """Return the GPU for a part: the GPU with the least left that suffices, else an unused one."""
    for releasing in (False, True):
        rests = node.parts.rests(
            requirements.owner, node.blocked(releasing=releasing), releasing=releasing
        )
        enough = [(rest, at) for at, rest in rests if rest >= requirements.part]
        exact_ones = [(rest, at) for rest, at in enough if rest == wanted]
        fresh = node.free_gpus(releasing=releasing) > 0
        if (enough and wanted != WHOLE_GPU) or (enough and not fresh):
            return min(exact_ones or enough)[1]
        if fresh:
            free = node.free_set_releasing() if releasing else node.free_set()
            return lowest(choose(node.node.links, node.node.sockets, 0, free, 1))
    raise AssertionError(f"a place on {node.node.name} holds a part of {requirements.part}")
