"""A device plug-in with simulated GPUs, which the kubelet allocates by UUID like real GPUs.

It runs as a process per node: ``python -m benchpool_cluster.device_plugin GPUS``, in the node's
mount namespace. ``GPUS`` is a JSON file of UUIDs and their health, read again after each change.
"""

from __future__ import annotations

import json
import sys
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc

from benchpool_cluster.device_messages import CLASSES, PACKAGE

FOLDER = Path("/var/lib/kubelet/device-plugins")
ENDPOINT = "benchpool-gpus.sock"
RESOURCE = "nvidia.com/gpu"
NAMES = uuid.UUID("6b1f0a52-6c2c-4a43-9d0e-2f6b1f7a90c4")


def uuids(node: str, count: int = 4) -> list[str]:
    """Return the UUIDs of a node's GPUs, the same at each call."""
    return [f"GPU-{uuid.uuid5(NAMES, f'{node}/{index}')}" for index in range(count)]


class Plugin:
    """Device plug-in of one kubelet."""

    def __init__(self, gpus: Path) -> None:
        self.gpus = gpus

    def options(self, _request: object, _context: object) -> Any:
        """Report that nothing is to be done before a container starts."""
        return CLASSES["DevicePluginOptions"]()

    def list_and_watch(self, _request: object, context: grpc.ServicerContext) -> Iterator[Any]:
        """Yield all GPUs with their health, and again after each change."""
        reported = None
        while context.is_active():
            health = json.loads(self.gpus.read_text())
            if health != reported:
                devices = [CLASSES["Device"](ID=key, health=value) for key, value in health.items()]
                yield CLASSES["ListAndWatchResponse"](devices=devices)
                reported = health
            time.sleep(0.2)

    def allocate(self, request: Any, _context: object) -> Any:
        """Make exactly the allocated GPUs visible to each container."""
        answers = []
        for container in request.container_requests:
            ids = ",".join(container.devices_ids)
            names = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
            pairs = [CLASSES["Pair"](key=name, value=ids) for name in names]
            answers.append(CLASSES["ContainerAllocateResponse"](envs=pairs))
        return CLASSES["AllocateResponse"](container_responses=answers)

    def pre_start(self, _request: object, _context: object) -> Any:
        """Return an empty answer, because a container start needs no preparation."""
        return CLASSES["PreStartContainerResponse"]()

    def serve(self) -> grpc.Server:
        """Listen on the socket that the kubelet expects."""
        server = grpc.server(ThreadPoolExecutor(max_workers=4))
        one, stream = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
        methods = {
            "GetDevicePluginOptions": _method(one, self.options, "Empty"),
            "ListAndWatch": _method(stream, self.list_and_watch, "Empty"),
            "Allocate": _method(one, self.allocate, "AllocateRequest"),
            "PreStartContainer": _method(one, self.pre_start, "PreStartContainerRequest"),
        }
        service = grpc.method_handlers_generic_handler(f"{PACKAGE}.DevicePlugin", methods)
        server.add_generic_rpc_handlers((service,))
        server.add_insecure_port(f"unix://{FOLDER / ENDPOINT}")
        server.start()
        return server


def register() -> None:
    """Register the plug-in's socket at this node's kubelet."""
    request = CLASSES["RegisterRequest"](version=PACKAGE, endpoint=ENDPOINT, resource_name=RESOURCE)
    with grpc.insecure_channel(f"unix://{FOLDER / 'kubelet.sock'}") as channel:
        call = channel.unary_unary(
            f"/{PACKAGE}.Registration/Register",
            request_serializer=_bytes,
            response_deserializer=CLASSES["Empty"].FromString,
        )
        call(request, timeout=30)


def run(gpus: Path) -> None:
    """Serve until killed.

    A starting kubelet empties the folder; the plug-in then serves and registers again.
    """
    known: tuple[int, int] | None = None
    server: grpc.Server | None = None
    while True:
        found = _identity(FOLDER / "kubelet.sock")
        if found and (found != known or not (FOLDER / ENDPOINT).exists()):
            if server:
                server.stop(None)
            server = Plugin(gpus).serve()
            try:
                register()
                known = found
            except grpc.RpcError:  # not listening yet; retry
                known = None
        time.sleep(0.2)


def _method(kind: Any, function: object, request: str) -> Any:
    read = CLASSES[request].FromString
    return kind(function, request_deserializer=read, response_serializer=_bytes)


def _bytes(message: Any) -> bytes:
    data: bytes = message.SerializeToString()
    return data


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        about = file.stat()
    except FileNotFoundError:
        return None
    return about.st_ino, about.st_mtime_ns


if __name__ == "__main__":
    run(Path(sys.argv[1]))
