"""Messages about a starting pod, made from Kubernetes' events for users (pure).

The raw event is kept beside the sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchpool_scheduler.contract.kubernetes import ADMISSION_GATE

Event = Mapping[str, Any]
Pod = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StartMessage:
    """Message about a start: a sentence, the progress (0-100), and a code for programs.

    ``stuck`` is True if the start does not continue by itself.
    """

    text: str
    percent: int
    code: str
    stuck: bool = False


_INSUFFICIENT = re.compile(r"(\d+) Insufficient ([\w./-]*\w)")
_NODES = re.compile(r"(\d+)/(\d+) nodes are available")


def of_event(event: Event) -> StartMessage:
    """Return the message for an event of the pod.

    >>> of_event({"reason": "Pulling", "message": 'Pulling image "lab:1"'}).text
    'Pulling the image lab:1'
    """
    reason, message = str(event.get("reason") or ""), str(event.get("message") or "")
    known = _EVENTS.get(reason)
    if known is not None:
        text, percent, stuck = known
        return StartMessage(text.format(image=_quoted(message)), percent, reason, stuck)
    if reason == "Pulled":
        return StartMessage(_pulled(message), 80, reason)
    if reason == "FailedScheduling":
        return scheduling_failed(message)
    if reason in ("Failed", "BackOff"):
        return _failed(reason, message)
    if reason in ("FailedMount", "FailedAttachVolume"):
        return StartMessage(
            f"A volume of the server is not available yet: {_short(message)}",
            60,
            reason,
            stuck=True,
        )
    return StartMessage(_short(message) or reason, 50, reason or "Event")


_EVENTS: Mapping[str, tuple[str, int, bool]] = {
    "Scheduled": ("Assigned to a node", 60, False),
    "Pulling": ("Pulling the image {image}", 65, False),
    "Created": ("The container is created", 85, False),
    "Started": ("The notebook server starts", 90, False),
    "TriggeredScaleUp": ("Starting a new node for it; this takes minutes", 40, False),
    "NotTriggerScaleUp": ("A new node would not help; waiting for free capacity", 40, True),
    "SuccessfulAttachVolume": ("The home folder is attached", 62, False),
    "Preempted": ("The cluster stopped the pod for pods of higher priority", 50, True),
    "Killing": ("The pod is being stopped", 50, True),
}


def scheduling_failed(message: str) -> StartMessage:
    """Return the message that no machine accepts the pod, with the reason.

    >>> scheduling_failed("0/5 nodes are available: 3 Insufficient nvidia.com/gpu, 2 node(s) had "
    ...     "untolerated taint {gpu: yes}.").text
    'No node can run it now: 3 of 5 nodes have too little free nvidia.com/gpu'
    """
    if "non-empty scheduling gates" in message:
        return _GATED
    found = _NODES.search(message)
    total = found[2] if found else "all"
    short = [f"{n} of {total} nodes have too little free {what}"
             for n, what in _INSUFFICIENT.findall(message)]  # fmt: skip
    if short:
        return StartMessage(
            f"No node can run it now: {', '.join(short)}", 40, "Unschedulable", stuck=True
        )
    if "PersistentVolume" in message or "volume" in message.lower():
        return StartMessage(
            "Its home volume is not reachable from a node with free capacity. An administrator "
            f"must check it ({_short(message)})",
            40,
            "Unschedulable",
            stuck=True,
        )
    return StartMessage(
        f"None of {total} nodes matches its settings. An administrator must check them "
        f"({_short(message)})",
        40,
        "Unschedulable",
        stuck=True,
    )


_GATED = StartMessage("Waiting for admission by the scheduler", 35, "SchedulingGated")


def of_pod(pod: Pod) -> Iterator[StartMessage]:
    """Yield messages from the state of the pod that no event contains."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    gates = [gate.get("name") for gate in spec.get("schedulingGates") or ()]
    if ADMISSION_GATE in gates:
        yield _GATED
    elif gates:
        names = ", ".join(str(name) for name in gates)
        yield StartMessage(
            f"Waiting for other admission controllers ({names})", 40, "SchedulingGated"
        )
    for container in (
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
    ):
        waiting = (container.get("state") or {}).get("waiting") or {}
        reason, message = str(waiting.get("reason") or ""), str(waiting.get("message") or "")
        if reason in _WAITING:
            text = _WAITING[reason].format(image=container.get("image", ""))
            yield StartMessage(
                f"{text}{f' ({_short(message)})' if message else ''}", 65, reason, True
            )


_WAITING: Mapping[str, str] = {
    "ErrImagePull": "The image {image} could not be pulled; retrying",
    "ImagePullBackOff": "The image {image} could not be pulled; retrying",
    "InvalidImageName": "{image} is not a valid image name. An administrator must correct it",
    "CreateContainerConfigError": "The container cannot be created. An administrator must check it",
    "CreateContainerError": "The container cannot be created. An administrator must check it",
    "CrashLoopBackOff": "The server exits right after its start; retrying",
}


def not_started(seconds: float, last: StartMessage | None) -> str:
    """Return the message about a start that took too long: what it last waited for.

    >>> not_started(300, None)
    'The server did not start within 300 s. Try again, or ask an administrator.'
    """
    why = "" if last is None else f"; last status: {last.text.rstrip('.')}"
    return (
        f"The server did not start within {seconds:g} s{why}. Try again, or ask an administrator."
    )


def refused_by_cluster(status: int, message: str) -> tuple[str, bool]:
    """Return why the API server refused the pod, as one sentence, and whether a quota is used up.

    >>> refused_by_cluster(403, 'pods "jupyter-susan" is forbidden: exceeded quota: build, '
    ...     'requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=4, limited: '
    ...     'requests.nvidia.com/gpu=4')[0]
    "The cluster's quota for these servers is used up: requested 1 nvidia.com/gpu, 4 of \
4 are used (quota build). Start without a GPU, or try again when another server has stopped."
    """
    quota = _QUOTA.search(message)
    if status == 403 and quota is not None:
        asked, used, limited = (_amounts(quota[part]) for part in ("asked", "used", "limited"))
        short = [
            f"requested {amount} {resource}, {used.get(resource, '?')} of "
            f"{limited.get(resource, '?')} are used"
            for resource, amount in asked.items()
        ]
        # Device names contain a domain. Without a GPU the same cores and pods would be requested.
        devices = all("/" in resource for resource in asked)
        other = "Start without a GPU" if devices else "Ask an administrator for more"
        return (
            f"The cluster's quota for these servers is used up: {'; '.join(short)} (quota "
            f"{quota['name']}). {other}, or try again when another server has stopped.",
            True,
        )
    policy = _POLICY.search(message)
    why = policy[1] if policy else message
    return f"The cluster rejected the server: {_short(why)}. Ask an administrator.", False


_QUOTA = re.compile(
    r"exceeded quota: (?P<name>[^,]+), requested: (?P<asked>.*?), used: (?P<used>.*?), "
    r"limited: (?P<limited>[^,\"]*(?:,[^,\"=]+=[^,\"]+)*)"
)
_POLICY = re.compile(r"denied request: (.*)", re.DOTALL)


def _amounts(text: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in text.split(","))
    return {name.removeprefix("requests."): value for name, _, value in pairs}


def _pulled(message: str) -> str:
    if "already present" in message:
        return "The image is on the node"
    found = re.search(r" in ([\d.]+\w*s)", message)
    return f"The image is pulled{f' ({found[1]})' if found else ''}"


def _failed(reason: str, message: str) -> StartMessage:
    if "image" in message.lower():
        text = f"The image could not be pulled; retrying ({_short(message)})"
    else:
        text = f"The container did not start; retrying ({_short(message)})"
    return StartMessage(text, 65, reason, stuck=True)


def _quoted(message: str) -> str:
    found = re.search(r'"([^"]+)"', message)
    return found[1] if found else ""


def _short(text: str) -> str:
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= 300 else f"{line[:297]}..."
