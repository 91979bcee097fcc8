"""Pods of each GPU on this node, from its kubelet: the pod resources API.

Source: k8s.io/kubelet, ``pkg/apis/podresources/v1/api.proto``. The few messages are built from a
table, which replaces generated code. Fields outside the table are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

SERVICE = "v1.PodResourcesLister"
TIMEOUT_S = 10.0
MOST_BYTES = 16 * 1024**2
PREFIXES = ("nvidia.com/gpu", "nvidia.com/mig-")
"""Beginnings of the names of resources that count GPUs or MIG slices."""
REPLICA = "::"
"""Separator between a shared device's name and the number of the share."""

PodName = tuple[str, str]


@dataclass(frozen=True, slots=True)
class KubeletDevice:
    """A GPU or a MIG slice that the kubelet allocates.

    Attributes:
        pods: Namespace and name of each pod that has it.
        shared: The kubelet counts it as several devices.
    """

    uuid: str
    resource: str
    pods: tuple[PodName, ...] = ()
    shared: bool = False


@dataclass(frozen=True, slots=True)
class GivenDevices:
    """Devices of one resource, allocated to a pod; without a pod, all allocatable devices."""

    resource: str
    ids: tuple[str, ...]
    pod: PodName | None = None


class Kubelet(Protocol):
    """Source of devices and of the pods that have them."""

    def devices(self) -> list[KubeletDevice]:
        """Return the devices by UUID. Raises ConnectionError if the kubelet does not answer."""

    def close(self) -> None:
        """Close the connection."""


def joined(given: Iterable[GivenDevices]) -> list[KubeletDevice]:
    """Return each device once, with all its pods.

    >>> all_of_them = GivenDevices("nvidia.com/gpu", ("GPU-a", "GPU-b::0", "GPU-b::1"))
    >>> for it in joined([all_of_them, GivenDevices("nvidia.com/gpu", ("GPU-a",), ("lab", "w0"))]):
    ...     print(it.uuid, it.pods, it.shared)
    GPU-a (('lab', 'w0'),) False
    GPU-b () True
    """
    ids: dict[tuple[str, str], set[str]] = {}
    pods: dict[tuple[str, str], dict[PodName, None]] = {}
    for part in given:
        if not part.resource.startswith(PREFIXES):
            continue
        for name in part.ids:
            key = (name.partition(REPLICA)[0], part.resource)
            ids.setdefault(key, set()).add(name)
            held = pods.setdefault(key, {})
            if part.pod is not None:
                held[part.pod] = None
    return [
        KubeletDevice(uuid, resource, tuple(pods[uuid, resource]), len(names) > 1)
        for (uuid, resource), names in sorted(ids.items())
    ]


class KubeletSocket:
    """The kubelet's own socket; see ``Kubelet``."""

    def __init__(self, socket: Path) -> None:
        options = [("grpc.max_receive_message_length", MOST_BYTES)]
        self._socket = socket
        self._channel: Any = grpc.insecure_channel(f"unix://{socket}", options=options)

    def devices(self) -> list[KubeletDevice]:
        """Return the devices and their pods. Raises ConnectionError."""
        listed = self._ask("List")
        found = [
            GivenDevices(one.resource_name, tuple(one.device_ids), (pod.namespace, pod.name))
            for pod in listed.pod_resources
            for container in pod.containers
            for one in container.devices
        ]
        free = self._ask("GetAllocatableResources")
        found += [GivenDevices(one.resource_name, tuple(one.device_ids)) for one in free.devices]
        return joined(found)

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()

    def _ask(self, name: str) -> Any:
        question, answer = _METHODS[name]
        call = self._channel.unary_unary(
            f"/{SERVICE}/{name}",
            request_serializer=_CLASSES[question].SerializeToString,
            response_deserializer=_CLASSES[answer].FromString,
        )
        try:
            return call(_CLASSES[question](), timeout=TIMEOUT_S)
        except grpc.RpcError as failed:
            raise ConnectionError(
                f"the kubelet does not report the GPUs of pods ({self._socket}: "
                f"{failed.code().name.lower()}, {failed.details()})"
            ) from failed


_METHODS = {
    "List": ("Question", "ListPodResourcesResponse"),
    "GetAllocatableResources": ("Question", "AllocatableResourcesResponse"),
}

# message -> field -> (number, type); a type in brackets is repeated
_MESSAGES: dict[str, dict[str, tuple[int, list[str] | None]]] = {
    "Question": {},
    "ContainerDevices": {"resource_name": (1, None), "device_ids": (2, [])},
    "ContainerResources": {"name": (1, None), "devices": (2, ["ContainerDevices"])},
    "PodResources": {
        "name": (1, None),
        "namespace": (2, None),
        "containers": (3, ["ContainerResources"]),
    },
    "ListPodResourcesResponse": {"pod_resources": (1, ["PodResources"])},
    "AllocatableResourcesResponse": {"devices": (1, ["ContainerDevices"])},
}
"""A field without a type is a text. A list marks a repeated field, of that message or of texts."""


def _classes() -> dict[str, Any]:
    package = "v1"
    described = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="benchpool_pod_resources.proto", package=package, syntax="proto3"
    )
    for message, fields in _MESSAGES.items():
        made = file.message_type.add(name=message)
        for name, (number, many) in fields.items():
            field = made.field.add(name=name, number=number, type=described.TYPE_STRING)
            if many is not None:
                field.label = described.LABEL_REPEATED
            if many:
                field.type, field.type_name = described.TYPE_MESSAGE, f".{package}.{many[0]}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}"))
        for name in _MESSAGES
    }


_CLASSES = _classes()
