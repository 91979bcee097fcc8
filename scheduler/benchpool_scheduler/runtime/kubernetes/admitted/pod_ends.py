"""The end of a pod created outside benchpool, and the reasons why it does not begin: pure.

Such a pod is never moved: once its gate is open it is bound to one node, and ends there.
"""

from __future__ import annotations

from benchpool_scheduler.contract.causes import EndCause
from benchpool_scheduler.runtime import EndedBy
from benchpool_scheduler.runtime.kubernetes.cluster_settings import ClusterSettings
from benchpool_scheduler.runtime.kubernetes.cluster_views import PodView
from benchpool_scheduler.runtime.kubernetes.pod_status import (
    TEXT_LIMIT,
    Trouble,
    WorkerEnd,
    seconds,
)


def end_of(
    pod: PodView, *, gone: bool, asked: bool, given_back: Trouble | None
) -> WorkerEnd | None:
    """Return how a pod has ended, or None while it may still run.

    The arguments have the same meaning as for benchpool's own pods.
    """
    if not gone and not pod.over:
        return None
    code = None if pod.ended is None else pod.ended.exit_code
    at = None if pod.ended is None else seconds(pod.ended.finished_at)
    if given_back is not None:
        return WorkerEnd(None, given_back.by, given_back.text)
    if asked:
        return WorkerEnd(code, EndedBy.NOTICE, None, at)
    if pod.phase == "Succeeded":
        return WorkerEnd(0, EndedBy.ITSELF, None, at)
    evicted = EndCause.EVICTED if pod.reason == "Evicted" else None
    if gone or pod.leaving or pod.why_leaving is not None or evicted:
        why = pod.why_leaving or pod.message or "its pod was deleted"
        return WorkerEnd(code, EndedBy.LOST, why[:TEXT_LIMIT], at, evicted)
    if pod.ended is not None and pod.ended.reason == "OOMKilled":
        return WorkerEnd(code, EndedBy.OUT_OF_MEMORY, "it ran out of memory", at)
    if code:
        return WorkerEnd(code, EndedBy.ITSELF, None, at)
    text = f"its pod failed ({pod.reason}): {pod.message}" if pod.reason else "its pod failed"
    return WorkerEnd(None, EndedBy.COULD_NOT_START, text[:TEXT_LIMIT], at)


def trouble_of(
    pod: PodView, settings: ClusterSettings, node: str, why_not: str | None
) -> Trouble | None:
    """Return the trouble of an admitted pod that does not fit on its node, or None.

    The pod is deleted only if it has an owner that creates another. A bare pod is left alone.
    Images and volumes are the owner's responsibility.
    """
    if pod.gates or pod.node or pod.over or pod.leaving or pod.unschedulable is None:
        return None
    if not pod.owned:
        return None
    text = f"{node} cannot run it: {why_not or pod.unschedulable}"[:TEXT_LIMIT]
    return Trouble("unschedulable", text, settings.unschedulable_s, EndedBy.COULD_NOT_START)
