"""Additions to a reason about nodes that an administrator closed or is about to close.

While the job only waits for free GPUs elsewhere, closed nodes are added to its reason. If the job
could run on no other node, they are its reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from benchpool_scheduler.core.capacity.placement import fits
from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.explain.sentences import plain
from benchpool_scheduler.core.jobs.job_info import JobInfo
from benchpool_scheduler.core.model import Node, ReasonCode, WaitReason
from benchpool_scheduler.phrases import count, exactly

NAMED = 3
"""Limit on the nodes named in a reason."""

SHORTEST_S = 60.0
"""Shortest time limit that is advised, in seconds."""

WITHOUT_THEM = frozenset({ReasonCode.NODES_EXCLUDED, ReasonCode.NO_NODE_READY})
"""Reasons in which only the nodes keep the job from starting."""


def with_closed_nodes(
    state: ClusterState, info: JobInfo, reason: WaitReason, now_s: float
) -> WaitReason:
    """Return the reason, extended by the closed nodes that the job could otherwise use."""
    closed = [node for node in state.nodes if node.closed and _in_the_way(node, info)]
    if not closed:
        return reason
    listing = _listing(closed)
    numbers = {**reason.numbers, "nodes_closed": len(closed)}
    if reason.code in WITHOUT_THEM:
        asked = plain(info.min_gang.gpus, 0)
        reason = WaitReason(
            ReasonCode.NODES_CLOSED,
            f"waits for {count(asked, 'GPU')} on a node that accepts jobs: {listing}",
            {"asked": asked},
            "it starts by itself when they accept jobs again",
        )
    else:
        reason = replace(reason, text=f"{reason.text}; {listing}")
    longest = _longest(state, info, closed, now_s)
    if longest is None:
        return replace(reason, numbers={**reason.numbers, **numbers})
    node, limit_s = longest
    return replace(
        reason,
        numbers={
            **reason.numbers,
            **numbers,
            "time_limit_s": limit_s,
            "would_start_limited_to": limit_s,
        },
        remedy=f"it would start now on {node.name} with a time limit of {exactly(limit_s)} or "
        f"less; or {reason.remedy}",
    )


def _in_the_way(node: Node, info: JobInfo) -> bool:
    """Return whether the job might use the node if it were open."""
    asked = info.requirements
    return (
        (not node.ready or node.name in asked.barred)
        and (asked.only is None or node.name in asked.only)
        and (not asked.models or node.gpu_model in asked.models)
        and len(node.gpus) - node.kept >= max(1, asked.gpus)
    )


def _listing(closed: Sequence[Node]) -> str:
    named = ", ".join(f"{node.name} {node.closed}" for node in closed[:NAMED])
    more = len(closed) - NAMED
    return named if more <= 0 else f"{named}, and {count(more, 'further node')}"


def _longest(
    state: ClusterState, info: JobInfo, closed: Sequence[Node], now_s: float
) -> tuple[Node, int] | None:
    """Return a fitting node that closes soon, and the time limit that ends before, or None."""
    soon = [node for node in closed if node.closes_s is not None and node.ready]
    for node in sorted(soon, key=lambda it: -(it.closes_s or 0.0)):
        limit_s = int((node.closes_s or 0.0) - now_s) // 60 * 60
        if limit_s < SHORTEST_S:
            return None
        left = info.job.barred - {node.name}
        there = JobInfo(replace(info.job, barred=left), info.age, info.branch, long=info.long)
        if fits(there, there.least, state.capacity, releasing=False):
            return node, limit_s
    return None
