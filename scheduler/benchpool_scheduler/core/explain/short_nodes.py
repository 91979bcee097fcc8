"""Reason of a job that waits although GPUs are free, because their node lacks CPUs or memory."""

from __future__ import annotations

from collections import Counter

from benchpool_scheduler.core.capacity.free_capacity import NodeCapacity
from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.explain.sentences import Number, measured, plain
from benchpool_scheduler.core.jobs.amounts import RESOURCES, WHOLE_GPU
from benchpool_scheduler.core.jobs.job_info import JobInfo
from benchpool_scheduler.core.model import NodeName, ReasonCode, WaitReason
from benchpool_scheduler.phrases import count, is_are

CPUS, MEMORY = 1, 2
MOST_HOLDERS = 2


def short_of_cpus_or_memory(
    state: ClusterState, info: JobInfo, numbers: dict[str, Number]
) -> WaitReason:
    """Explain a job whose GPUs are free only on nodes that lack CPUs or memory.

    The reason names the node with the most free GPUs, its amounts, and the projects that hold most.
    """
    asked = [measured(info.request[it], it) for it in (CPUS, MEMORY) if info.request[it]]
    text = f"needs {' and '.join(asked)} on the node of its GPUs; no node has them free"
    node = _freest(state, info)
    if node is not None:
        text = f"needs {' and '.join(asked)} on the node of its GPUs; {_there(state, info, node)}"
        numbers |= {"node": node.node.name, **_amounts(info, node)}
    branch = info.branch
    guaranteed = state.usage.guarantees[branch.index][0]
    if guaranteed is not None:
        idle = min(guaranteed - state.ledger.held[branch.index].gpus, _free(state) * WHOLE_GPU)
        if idle >= info.min_gang.gpus:
            gpus = idle // WHOLE_GPU
            text += (
                f"; {count(gpus, 'GPU')} that {is_are(gpus)} guaranteed to {branch.name} "
                f"{'stands' if gpus == 1 else 'stand'} idle meanwhile"
            )
            numbers["guaranteed_idle"] = gpus
    return WaitReason(
        ReasonCode.POOL_FULL,
        text,
        numbers,
        "it starts when work there ends, or sooner with fewer CPUs or less memory",
    )


def _freest(state: ClusterState, info: JobInfo) -> NodeCapacity | None:
    """Return the allowed node with the most free GPUs, or None if one worker needs more."""
    nodes = state.capacity.freest(info.requirements, releasing=False)
    return next((it for it in nodes if it.free_gpus() >= info.requirements.gpus), None)


def _short(info: JobInfo, node: NodeCapacity) -> int:
    """Return the resource that the node lacks for one worker."""
    lacks_cpus = node.cpus_bound and node.unused[0] < info.request.cpus
    return CPUS if lacks_cpus else MEMORY


def _amounts(info: JobInfo, node: NodeCapacity) -> dict[str, Number]:
    short = _short(info, node)
    return {
        "resource": RESOURCES[short],
        "resource_asked": plain(info.request[short], short),
        "resource_free": plain(max(0, node.unused[short - 1]), short),
    }


def _there(state: ClusterState, info: JobInfo, node: NodeCapacity) -> str:
    short, name = _short(info, node), node.node.name
    free = max(0, node.unused[short - 1])
    of = "CPUs" if short == CPUS else "GiB of memory"
    held = _holders(state, name, short).most_common(MOST_HOLDERS)
    holders = " and ".join(f"{project} holds {plain(it, short):g}" for project, it in held)
    by = f", {holders}" if holders else ""
    gpus = node.free_gpus()
    return f"{name} has {count(gpus, 'GPU')} and {plain(free, short):g} {of} free{by}"


def _holders(state: ClusterState, node: NodeName, resource: int) -> Counter[str]:
    """Return the amount that each project's workers hold on a node."""
    found: Counter[str] = Counter()
    for running in state.running:
        for info in running:
            workers = sum(worker.node == node for worker in info.job.held)
            if workers and info.request[resource]:
                found[info.branch.name] += workers * info.request[resource]
    return found


def _free(state: ClusterState) -> int:
    return sum(node.free_gpus() for node in state.capacity.nodes)
