"""GPU requests of a pod in all their places, and the resulting lease of its server (pure).

Profiles, overrides, hooks, init containers and sidecars can all request GPUs. benchpool leases
those of the notebook container and refuses all others, so that no GPU is used without a lease.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from benchpool_scheduler.contract.kubernetes import ADMISSION_GATE, GPU_RESOURCE, LEASE
from benchpool_scheduler.errors import InvalidInput, Refused
from benchpool_scheduler.phrases import count

NOTEBOOK = "notebook"
"""Name of KubeSpawner's container for the server."""

VISIBLE_DEVICES = "NVIDIA_VISIBLE_DEVICES"

Pod = Mapping[str, Any]
"""Pod as the API server reads it."""

_CONTAINERS = ("containers", "initContainers", "init_containers", "ephemeralContainers")
_CLAIMS = ("resourceClaims", "resource_claims")
_NODE_NAMES = ("nodeName", "node_name")


@dataclass(frozen=True, slots=True)
class ContainerGpus:
    """GPU request of one container.

    Attributes:
        container: Name of the container. ``resource``: resource name of the GPUs.
    """

    container: str
    resource: str
    count: int


@dataclass(frozen=True, slots=True)
class GpuRequest:
    """GPUs for a server to lease. No lease if ``gpus`` is 0."""

    gpus: int = 0
    resource: str = GPU_RESOURCE
    models: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GpuSettings:
    """GPU settings of configuration and profile, in addition to the pod itself."""

    gpus: int | None = None
    resource: str = GPU_RESOURCE
    models: tuple[str, ...] = ()


def gpu_requests(pod: Pod, kinds: Sequence[str]) -> list[ContainerGpus]:
    """Return all GPU requests of a pod.

    Args:
        kinds: Patterns of the GPU resources, such as ``nvidia.com/*``.

    Raises:
        InvalidInput: A number of GPUs cannot be read, or limit and request differ.

    >>> pod = {"spec": {"containers": [{"name": "notebook", "resources": {
    ...     "limits": {"nvidia.com/gpu": "2", "memory": "1Gi"}}}]}}
    >>> gpu_requests(pod, ["nvidia.com/*"])
    [ContainerGpus(container='notebook', resource='nvidia.com/gpu', count=2)]
    """
    found = []
    for container in _containers(pod):
        resources = container.get("resources") or {}
        counts: dict[str, int] = {}
        for part in ("requests", "limits"):
            for name, value in (resources.get(part) or {}).items():
                if not is_gpu(name, kinds):
                    continue
                count = _count(container, name, value)
                if counts.setdefault(name, count) != count:
                    raise InvalidInput(
                        f"The container {container.get('name')} requests {counts[name]} and at "
                        f"most {count} {name}; for GPUs both numbers must be the same.",
                        code="gpu-requests",
                    )
        found += [
            ContainerGpus(str(container.get("name", "")), name, count)
            for name, count in counts.items()
            if count
        ]
    return found


def is_gpu(resource: str, kinds: Sequence[str]) -> bool:
    """Return whether a resource is a GPU or a part of one."""
    return any(fnmatchcase(resource, kind) for kind in kinds)


def gpu_request_of(
    chosen: int | None,
    models: tuple[str, ...],
    settings: GpuSettings,
    requests: Iterable[ContainerGpus],
) -> GpuRequest:
    """Return the GPUs for a server to lease.

    Args:
        chosen: Number of GPUs chosen by the user. None if profile and settings determine it.
        models: GPU models that the user accepts. Empty for any.

    Raises:
        InvalidInput: Two parts of profile and configuration contradict each other.
        Refused: The user's choice contradicts the profile.

    >>> profile = [ContainerGpus("notebook", "nvidia.com/gpu", 2)]
    >>> gpu_request_of(None, (), GpuSettings(), profile)
    GpuRequest(gpus=2, resource='nvidia.com/gpu', models=())
    >>> gpu_request_of(0, (), GpuSettings(), profile).gpus
    0
    """
    asked = list(requests)
    for request in asked:
        if request.container != NOTEBOOK:
            raise _elsewhere(request)
    if len(asked) > 1:
        raise InvalidInput(
            f"The profile requests {_words(asked[0])} and {_words(asked[1])}. A server has GPUs "
            "of one kind only.",
            code="gpu-requests",
        )
    resource = asked[0].resource if asked else settings.resource
    configured = asked[0].count if asked else settings.gpus
    if asked and settings.gpus is not None and settings.gpus != asked[0].count:
        raise InvalidInput(
            f"The profile requests {_words(asked[0])} and sets gpus to {settings.gpus}. Remove "
            "one of them.",
            code="gpu-requests",
        )
    if chosen and configured and chosen != configured:
        raise Refused(
            f"This profile has {count(configured, 'GPU')}, but {chosen} "
            f"{'were' if chosen != 1 else 'was'} requested. Choose {configured} or 0, or another "
            "profile.",
            code="gpu-profile",
            field="gpus",
            numbers={"asked": chosen, "profile": configured},
        )
    gpus = configured or 0 if chosen is None else chosen
    return GpuRequest(gpus, resource, _models(models, settings.models))


def _models(chosen: tuple[str, ...], configured: tuple[str, ...]) -> tuple[str, ...]:
    if not chosen or not configured:
        return chosen or configured
    both = tuple(model for model in chosen if model in configured)
    if not both:
        raise Refused(
            f"This profile has GPUs of model {' or '.join(configured)}, but {' or '.join(chosen)} "
            "was requested. Choose one of its models, or another profile.",
            code="gpu-profile",
            field="gpu_models",
        )
    return both


# --------------------------------------------------------------------------- the finished pod


def check_pod(pod: Pod, asked: GpuRequest, lease: str | None, kinds: Sequence[str]) -> None:
    """Refuse a pod that does not match its lease.

    Args:
        lease: ID of the lease. None for a server without GPUs.

    Raises:
        InvalidInput: It requests other GPUs, or could use GPUs without a request.
    """
    requests = gpu_requests(pod, kinds)
    for request in requests:
        if request.container != NOTEBOOK:
            raise _elsewhere(request)
    has = [(request.resource, request.count) for request in requests]
    leased = [(asked.resource, asked.gpus)] if lease is not None else []
    if has != leased:
        raise InvalidInput(
            f"The pod requests {_all(requests)}, but "
            f"{f'{asked.gpus} {asked.resource}' if lease else 'no GPU'} was reserved. It was "
            "changed after the reservation (modify_pod_hook?). Set GPUs in a profile or by gpus "
            "instead.",
            code="gpu-requests",
        )
    check_ways_around(pod)
    if lease is not None:
        _check_admission(pod, lease)


def check_ways_around(pod: Pod) -> None:
    """Refuse a pod that could use GPUs without a request. Errors: InvalidInput."""
    spec = pod.get("spec") or {}
    if any(spec.get(key) for key in _CLAIMS):
        raise InvalidInput(
            "The pod has device claims (resourceClaims), which benchpool does not count yet. "
            "Request GPUs by number.",
            code="gpu-requests",
        )
    for container in _containers(pod):
        for variable in container.get("env") or ():
            if _name(variable) == VISIBLE_DEVICES:
                raise InvalidInput(
                    f"The container {container.get('name')} sets {VISIBLE_DEVICES}, which can "
                    "show it other users' GPUs. Remove it.",
                    code="gpu-requests",
                )


def _check_admission(pod: Pod, lease: str) -> None:
    spec, metadata = pod.get("spec") or {}, pod.get("metadata") or {}
    gates = spec.get("schedulingGates") or ()
    if (
        ADMISSION_GATE not in [gate.get("name") for gate in gates]
        or (metadata.get("labels") or {}).get(LEASE) != lease
    ):
        raise InvalidInput(
            f"The pod lost its scheduling gate {ADMISSION_GATE} or its label {LEASE} "
            "(modify_pod_hook?). A hook may add gates and labels, but must keep these.",
            code="gpu-requests",
        )
    if any(spec.get(key) for key in _NODE_NAMES):
        raise InvalidInput(
            "The pod names its node (nodeName), but benchpool places servers with GPUs. Use "
            "node_selector, or remove nodeName.",
            code="gpu-requests",
        )


# --------------------------------------------------------------------------- inside


def _containers(pod: Pod) -> Iterator[Mapping[str, Any]]:
    spec = pod.get("spec") or {}
    for kind in _CONTAINERS:
        yield from spec.get(kind) or ()


def _count(container: Mapping[str, Any], resource: str, value: object) -> int:
    text = str(value)
    if not (text.isascii() and text.isdigit()) or isinstance(value, bool):
        raise InvalidInput(
            f"The container {container.get('name')} requests {text[:40]!r} {resource}. GPUs are "
            "whole numbers.",
            code="gpu-requests",
        )
    return int(text)


def _elsewhere(request: ContainerGpus) -> InvalidInput:
    return InvalidInput(
        f"The container {request.container} requests {_words(request)}, but only the notebook "
        "container can have GPUs. An administrator must remove the request.",
        code="gpu-requests",
    )


def _name(variable: object) -> object:
    return variable.get("name") if isinstance(variable, Mapping) else variable


def _words(request: ContainerGpus) -> str:
    return f"{request.count} {request.resource}"


def _all(requests: Sequence[ContainerGpus]) -> str:
    return " and ".join(_words(request) for request in requests) or "no GPU"
