"""The state of a worker, from its pod: pure.

``end_of`` returns how a worker has ended, from its pod's last state. ``trouble_of`` returns why a
worker does not begin, how long that is tolerated, and what is at fault. A worker that never began
because of its node is ``NOT_TAKEN``: its job tries other nodes. Other ends that the job did not
cause are ``LOST``: the job is queued again automatically.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

import msgspec
from msgspec import Struct

from benchpool_scheduler.contract.causes import EndCause, cause_of
from benchpool_scheduler.runtime import EndedBy
from benchpool_scheduler.runtime.kubernetes.cluster_settings import ClusterSettings
from benchpool_scheduler.runtime.kubernetes.cluster_views import PodView
from benchpool_scheduler.runtime.kubernetes.raw_objects import ContainerTerminated

FOR_GOOD = (
    "invalidimagename",
    "errimageneverpull",
    "not found",
    "manifest unknown",
    "unauthorized",
    "denied",
    "no such image",
    "invalid reference",
)
"""Words of messages about images that cannot be pulled by a retry."""

OF_THE_NODE = (
    "deadline exceeded",
    "timed out",
    "timeout",
    "failed to reserve",
    "unavailable",
    "connection refused",
    "transport",
    "no space left",
    "disk quota exceeded",
    "too many open files",
    "resource temporarily unavailable",
    "cannot allocate memory",
    "input/output error",
    "device or resource busy",
    "stale file handle",
)
"""Words of messages about containers that failed because of their node, including slow mounts."""

OF_THE_JOB = frozenset({"pull", "slow", "slow-container"})
"""Troubles that a job can cause on any node: by its image, or by a volume of its user."""

PULL = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
NOT_KNOWN = ("ContainerStatusUnknown", "Unknown")
"""Reasons of a container that its node lost track of; the reported exit code is invented."""
TEXT_LIMIT = 600


class TerminationMessage(Struct, frozen=True):
    """Termination message of an agent."""

    exit_code: int | None = None
    by: str = EndedBy.LOST
    text: str | None = None
    started: float | None = None
    ended: float | None = None
    cause: str | None = None
    traceback: str | None = None


@dataclass(frozen=True, slots=True)
class WorkerEnd:
    """The end of a worker; ``cause`` and ``traceback`` as in ``runtime.WorkerEnded``."""

    exit_code: int | None
    by: EndedBy
    text: str | None = None
    at: float | None = None
    cause: EndCause | None = None
    traceback: str | None = None


@dataclass(frozen=True, slots=True)
class Trouble:
    """The reason why a worker does not begin.

    Attributes:
        kind: Word that identifies the kind of trouble over time.
        bear_s: Time after which the worker is given up, in seconds.
        by: How the worker ends then.
    """

    kind: str
    text: str
    bear_s: float
    by: EndedBy


def end_of(
    pod: PodView, *, gone: bool, asked: bool, given_back: Trouble | None
) -> WorkerEnd | None:
    """Return how a worker has ended, or None while its pod may still run.

    Args:
        gone: The pod does not exist any more; ``pod`` is its last state.
        asked: The worker was sent a notice. ``given_back``: the runtime stopped waiting for it.
    """
    if not gone and not pod.over:
        return None  # its container may have ended, but the node has not freed its GPUs yet
    if given_back is not None:
        # A deleted pod reports code 137 for a container that never began.
        return WorkerEnd(None, given_back.by, given_back.text)
    taken = gone or pod.leaving or pod.why_leaving is not None
    if pod.ended is not None:
        return _ended(pod, pod.ended, asked=asked, taken=taken or pod.reason == "Evicted")
    if asked:
        return WorkerEnd(None, EndedBy.NOTICE, None)
    if pod.phase == "Failed" and pod.node and pod.reason and not (pod.running or pod.why_leaving):
        # None of its containers began: OutOfcpu, UnexpectedAdmissionError, Evicted, ...
        text = f"{pod.node} rejected it ({pod.reason}): {pod.message}"
        return WorkerEnd(None, EndedBy.NOT_TAKEN, text[:TEXT_LIMIT])
    if pod.setup is not None and not taken:
        message = pod.setup.message or pod.setup.reason
        text = f"{pod.node} could not install the agent in its pod (exit code "
        text = f"{text}{pod.setup.exit_code}): {message}"[:TEXT_LIMIT]
        return WorkerEnd(None, EndedBy.NOT_TAKEN, text)
    # An init container killed with its pod also reports 137, so its code is not its own failure.
    return WorkerEnd(None, EndedBy.LOST, _why_lost(pod), cause=_evicted(pod))


def _evicted(pod: PodView) -> EndCause | None:
    """Return the cause EVICTED if the node evicted the pod for lack of memory or disk, or None."""
    return EndCause.EVICTED if pod.reason == "Evicted" else None


def _ended(pod: PodView, ended: ContainerTerminated, *, asked: bool, taken: bool) -> WorkerEnd:
    """Return the end in the agent's termination message, else the end that the cluster reports."""
    at = seconds(ended.finished_at)
    if ended.reason == "OOMKilled":
        text = "it ran out of memory: its pod needed more than it requested"
        return WorkerEnd(ended.exit_code, EndedBy.OUT_OF_MEMORY, text, at)
    words = termination_message(ended.message)
    if words is not None:
        by = EndedBy(words.by) if words.by in set(EndedBy) else EndedBy.LOST
        if by is EndedBy.MACHINE_FAULT:
            # The backoff of nodes handles this fault; a single machine uses ``Drain``.
            return WorkerEnd(None, EndedBy.NOT_TAKEN, f"{pod.node}: {words.text}", at)
        if asked and by is EndedBy.LOST:
            # Its agent received the SIGTERM of the deletion, but not the notice that caused it.
            return WorkerEnd(words.exit_code, EndedBy.NOTICE, None, words.ended or at)
        cause = _evicted(pod) if by is EndedBy.LOST else cause_of(words.cause)
        end = WorkerEnd(words.exit_code, by, words.text, words.ended or at)
        return replace(end, cause=cause, traceback=words.traceback)
    if asked:
        return WorkerEnd(ended.exit_code, EndedBy.NOTICE, None, at)
    if taken:
        return WorkerEnd(ended.exit_code, EndedBy.LOST, _why_lost(pod), at, _evicted(pod))
    if ended.reason in NOT_KNOWN:
        text = (
            f"{pod.node} does not report how its container ended: the node may have been restarted"
        )
        return WorkerEnd(None, EndedBy.LOST, text, at)
    if ended.reason in ("StartError", "ContainerCannotRun"):
        return _not_made(pod, ended, at)
    return WorkerEnd(ended.exit_code, EndedBy.ITSELF, None, at)


def _not_made(pod: PodView, ended: ContainerTerminated, at: float | None) -> WorkerEnd:
    """Return the end of a worker whose container was created and could not be started."""
    message = ended.message or ended.reason
    if of_the_node(message):
        text = f"{pod.node} could not start its container: {message}"
        return WorkerEnd(None, EndedBy.NOT_TAKEN, text[:TEXT_LIMIT], at)
    text = f"its container could not be started: {message}"
    return WorkerEnd(None, EndedBy.COULD_NOT_START, text[:TEXT_LIMIT], at)


def of_the_node(message: str) -> bool:
    """Return whether a message about a failed container names a cause in the node.

    >>> of_the_node("context deadline exceeded"), of_the_node("exec: python3: not found")
    (True, False)
    """
    return any(word in message.lower() for word in OF_THE_NODE)


def termination_message(text: str) -> TerminationMessage | None:
    """Return the termination message of an agent, or None if there is no valid one."""
    try:
        return msgspec.json.decode(text, type=TerminationMessage)
    except (msgspec.DecodeError, ValueError):
        return None


def _why_lost(pod: PodView) -> str:
    if pod.why_leaving:
        return f"the cluster deleted its pod: {pod.why_leaving}"[:TEXT_LIMIT]
    if pod.reason or pod.message:
        return f"its pod was ended ({pod.reason}): {pod.message}"[:TEXT_LIMIT]
    where = f" on {pod.node}" if pod.node else ""
    return f"its pod was deleted{where}, or its node is gone"


def witness(pod: PodView | None, job: str, given_back: Trouble | None) -> str:
    """Return the witness of a rejection by a node: the job, or the user for all of the user's jobs.

    An image that cannot be pulled is rejected by every node, and a job may forge its agent's
    termination message. Therefore any number of such rejections of one user counts once.
    """
    forged = pod is not None and pod.ended is not None
    own_doing = given_back.kind in OF_THE_JOB if given_back is not None else forged
    return f"user {pod.user}" if own_doing and pod is not None and pod.user else job


def trouble_of(
    pod: PodView, settings: ClusterSettings, node: str, why_not: str | None
) -> Trouble | None:
    """Return why an admitted pod is not running, or None.

    Args:
        node: Node chosen for it. ``why_not``: why no pod may be started there.
    """
    if pod.gates or pod.running or pod.over or pod.leaving:
        return None
    if pod.unschedulable is not None and not pod.node:
        # The kube-scheduler's own message is mostly about nodes that it was not to consider.
        text = f"{node} cannot run it: {why_not or pod.unschedulable}"[:TEXT_LIMIT]
        return Trouble("unschedulable", text, settings.unschedulable_s, EndedBy.NOT_TAKEN)
    if pod.waiting is not None and pod.waiting[0] in PULL:
        return _pull(pod, pod.waiting[1] or pod.waiting[0], pod.waiting[0], settings)
    if pod.waiting is not None:
        return _not_begun(pod, *pod.waiting, settings)
    text = f"its pod on {pod.node or 'its node'} did not start: it may be waiting for a volume"
    return Trouble("slow", text, settings.prepare_s, EndedBy.NOT_TAKEN)


def _not_begun(pod: PodView, reason: str, message: str, settings: ClusterSettings) -> Trouble:
    """Return the trouble of a container that is not created.

    The job is never at fault for the agent's container.
    """
    if pod.preparing or of_the_node(message):
        which = "the agent's" if pod.preparing else "its"
        text = f"{pod.node} cannot start {which} container ({reason}): {message}"[:TEXT_LIMIT]
        kind = "agent-container" if pod.preparing else "slow-container"
        return Trouble(kind, text, settings.pull_s, EndedBy.NOT_TAKEN)
    text = f"its container cannot be started ({reason}): {message}"[:TEXT_LIMIT]
    return Trouble("container", text, settings.pull_s, EndedBy.COULD_NOT_START)


def _pull(pod: PodView, message: str, reason: str, settings: ClusterSettings) -> Trouble:
    if pod.preparing:
        text = f"{pod.node} cannot pull the agent's image {settings.agent_image} ({reason}): "
        text = f"{text}{message}"[:TEXT_LIMIT]
        return Trouble("agent-pull", text, settings.pull_s, EndedBy.NOT_TAKEN)
    never = any(word in f"{reason} {message}".lower() for word in FOR_GOOD)
    if never:
        text = f"its image cannot be pulled ({reason}): {message}"[:TEXT_LIMIT]
        return Trouble("image", text, settings.pull_s / 4, EndedBy.COULD_NOT_START)
    text = f"{pod.node} cannot pull its image ({reason}): {message}"[:TEXT_LIMIT]
    return Trouble("pull", text, settings.pull_s, EndedBy.NOT_TAKEN)


def seconds(text: str | None) -> float | None:
    """Return a time of Kubernetes in seconds since the epoch, or None.

    >>> seconds("1970-01-01T00:01:00Z"), seconds(None), seconds("soon")
    (60.0, None, None)
    """
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None
