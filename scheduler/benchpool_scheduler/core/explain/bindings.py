"""Reasons that do not depend on free capacity: limits, quotas, and the size of the pool.

Each function returns the reason for a job that its caller has found to be bound in this way.
"""

from __future__ import annotations

from benchpool_scheduler.core.capacity.feasibility import beyond_limit, beyond_quota
from benchpool_scheduler.core.capacity.free_capacity import FreeCapacity
from benchpool_scheduler.core.capacity.placement import fits
from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.explain.sentences import Number, measured, plain
from benchpool_scheduler.core.jobs.amounts import RESOURCES
from benchpool_scheduler.core.jobs.job_info import JobInfo
from benchpool_scheduler.core.model import ReasonCode, WaitReason
from benchpool_scheduler.phrases import count, is_are


def limit_reached(state: ClusterState, info: JobInfo, index: int, resource: int) -> WaitReason:
    """Explain a job that would exceed the limit of its project or of an ancestor (R8)."""
    branch, ledger = state.tree.branches[index], state.ledger
    limit = branch.limit[resource] or 0
    held = ledger.held[index][resource] + ledger.releasing[index][resource]
    asked = info.min_gang[resource]
    numbers: dict[str, Number] = {
        "resource": RESOURCES[resource],
        "asked": plain(asked, resource),
        "held": plain(held, resource),
        "limit": plain(limit, resource),
        "level": branch.name,
    }
    if branch.gone:
        return WaitReason(
            ReasonCode.PROJECT_LIMIT,
            f"cannot start: project {branch.name} was removed or divided and starts no more jobs",
            numbers,
            "cancel it and send it to another project, or ask an administrator to declare "
            "that project again",
        )
    least = min(
        bound
        for i in info.branch.path
        if (bound := state.tree.branches[i].limit[resource]) is not None
    )
    if asked > least:
        remedy = (
            f"submit it with at most {measured(least, resource)} in all, "
            f"or ask for a higher limit of {branch.name}"
        )
    else:
        remedy = (
            f"it can start when {branch.name} has released "
            f"{measured(held + asked - limit, resource)}, or with a higher limit"
        )
    return WaitReason(
        ReasonCode.PROJECT_LIMIT,
        f"asks for {measured(asked, resource)}; project {branch.name} holds "
        f"{plain(held, resource):g} of at most {plain(limit, resource):g}",
        numbers,
        remedy,
    )


def guarantee_reached(state: ClusterState, info: JobInfo, index: int, resource: int) -> WaitReason:
    """Explain a non-preemptible job that does not fit into the guaranteed quota (R8)."""
    branch = state.tree.branches[index]
    quota = branch.firm_quota[resource] or 0
    firm = state.ledger.firm[index][resource] + state.ledger.releasing_firm[index][resource]
    asked = info.min_gang[resource]
    return WaitReason(
        ReasonCode.NON_PREEMPTIBLE_OVER_QUOTA,
        f"is non-preemptible and asks for {measured(asked, resource)}; such jobs of project "
        f"{branch.name} hold {plain(firm, resource):g} of {plain(quota, resource):g} guaranteed",
        {
            "resource": RESOURCES[resource],
            "asked": plain(asked, resource),
            "held": plain(firm, resource),
            "quota": plain(quota, resource),
            "level": branch.name,
        },
        "submit it as preemptible, or wait until other non-preemptible work has ended"
        if asked <= quota
        else "submit it as preemptible, or ask for a larger quota",
    )


def impossible(state: ClusterState, info: JobInfo) -> WaitReason:
    """Explain a job that can never run. A reason from the nodes is valid until they change."""
    if (over := beyond_limit(info, state.tree)) is not None:
        return limit_reached(state, info, *over)
    if (over := beyond_quota(info, state.tree)) is not None:
        return guarantee_reached(state, info, *over)
    known = state.never.get(info.signature)
    if known is None:
        known = state.never[info.signature] = never_fits(state, info)
    return known


def never_fits(state: ClusterState, info: JobInfo) -> WaitReason:
    """Explain a job that could not run in an empty pool, whatever the limits and quotas."""
    everything = state.whole
    if not info.requirements.anywhere and fits(
        info.anywhere(), info.least, everything, releasing=False
    ):
        return _excluded(state, info)
    if info.requirements.part and not any(node.shared for node in state.nodes):
        return _no_shared_gpus(info)
    if not everything.allowed(info.requirements) and info.spec.gpu_models:
        return _no_such_model(state, info)
    if not everything.holds(info.requirements):
        return _larger_than_node(state, info, everything)
    if not fits(info, info.least, everything, releasing=False):
        return _larger_than_pool(info, everything)
    return _not_ready(state, info)


def _excluded(state: ClusterState, info: JobInfo) -> WaitReason:
    asked = plain(info.min_gang.gpus, 0)
    left = state.whole.allowed(info.requirements).bit_count()
    total = len(state.nodes)
    return WaitReason(
        ReasonCode.NODES_EXCLUDED,
        f"waits for {count(asked, 'GPU')}: {count(left, 'node')} of {total} may be used, because "
        "its volume is not available on the others, or they did not accept it",
        {"asked": asked, "nodes": left, "of": total},
        "nodes that did not accept it are tried again, at first after seconds; a volume stays on "
        "its nodes",
    )


def _no_such_model(state: ClusterState, info: JobInfo) -> WaitReason:
    wanted = " or ".join(info.spec.gpu_models)
    models = sorted({node.gpu_model for node in state.nodes if node.gpu_model})
    have = ", ".join(models) or "no GPU with a known model"
    return WaitReason(
        ReasonCode.NO_SUCH_MODEL,
        f"asks for the GPU model {wanted}; the pool has {have}",
        {"asked": wanted, "models": have},
        "submit it with a model that the pool has, or without a model",
    )


def _no_shared_gpus(info: JobInfo) -> WaitReason:
    asked = plain(info.request.gpus, 0)
    return WaitReason(
        ReasonCode.LARGER_THAN_NODE,
        f"asks for {measured(info.request.gpus, 0)}; no node of the pool has shared GPUs",
        {"asked": asked, "shared_nodes": 0},
        "submit it with a whole GPU, or ask your administrator for nodes with shared GPUs",
    )


def _larger_than_node(state: ClusterState, info: JobInfo, everything: FreeCapacity) -> WaitReason:
    largest, asked = everything.most_free(info.requirements), plain(info.request.gpus, 0)
    numbers: dict[str, Number] = {"asked": asked, "largest_node": largest}
    if asked <= largest:
        beside = f"{measured(info.request.cpus, 1)} and {measured(info.request.memory, 2)}"
        text = f"asks for {count(asked, 'GPU')}, {beside} on one node; no node has as much"
        remedy = "submit it with fewer CPUs, less memory or fewer GPUs for each worker"
    else:
        text = (
            f"asks for {count(asked, 'GPU')} on one node; "
            f"the largest node has {largest} for training"
        )
        remedy = _smaller_workers(info, largest, everything)
        if away := _away(state, info, asked):
            numbers["away"] = away
            text = f"{text}, and one has {away} more that cannot be assigned now"
            remedy = f"it can start when these are available again; or {remedy}"
    return WaitReason(ReasonCode.LARGER_THAN_NODE, text, numbers, remedy)


def _away(state: ClusterState, info: JobInfo, asked: float) -> int:
    """Return how many GPUs are away from a node that is large enough with them, or 0."""
    models = info.spec.gpu_models
    return next(
        (
            node.away
            for node in state.nodes
            if node.away
            and len(node.gpus) + node.away >= asked
            and (not models or node.gpu_model in models)
        ),
        0,
    )


def _smaller_workers(info: JobInfo, largest: int, everything: FreeCapacity) -> str:
    for gpus in range(largest, 0, -1):
        if fits(info.with_gpus(gpus), info.least, everything, releasing=False):
            each = " for each worker" if info.spec.workers > 1 else ""
            return f"submit it with at most {count(gpus, 'GPU')}{each}"
    return "ask your administrator for more GPUs in the training pool"


def _larger_than_pool(info: JobInfo, everything: FreeCapacity) -> WaitReason:
    asked, level = info.least, info.spec.required_level
    most = _most_workers(info, everything)
    each = measured(info.request.gpus, 0)
    where = "the whole pool" if level is None else f"one {level}"
    return WaitReason(
        ReasonCode.LARGER_THAN_POOL,
        f"asks for {asked} workers of {each} at once; {where} has room for {most}",
        {"asked_workers": asked, "workers_that_fit": most, "level": level},
        f"submit it with at most {count(most, 'worker')}"
        + ("" if level is None else f", or without the required {level}"),
    )


def _most_workers(info: JobInfo, everything: FreeCapacity) -> int:
    """Return the size of the largest gang that fits, by bisection: every smaller gang fits too."""
    least, most = 0, info.least - 1
    while least < most:
        middle = (least + most + 1) // 2
        if fits(info, middle, everything, releasing=False):
            least = middle
        else:
            most = middle - 1
    return least


def _not_ready(state: ClusterState, info: JobInfo) -> WaitReason:
    away = sum(not node.ready for node in state.nodes)
    asked = plain(info.min_gang.gpus, 0)
    return WaitReason(
        ReasonCode.NO_NODE_READY,
        f"waits for {count(asked, 'GPU')}: {count(away, 'node')} of the pool "
        f"{is_are(away)} not ready, and the others are too small",
        {"asked": asked, "nodes_not_ready": away},
        "it can start when the nodes are ready again; ask your administrator",
    )
