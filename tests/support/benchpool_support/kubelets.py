"""The pod resources API of a kubelet on its own socket, with scripted answers."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc


def text(number: int, value: str | bytes) -> bytes:
    """Return an encoded field of a message: its number, its length, its bytes."""
    data = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2]) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    low = value & 0x7F
    return bytes([low]) if value < 0x80 else bytes([low | 0x80]) + _varint(value >> 7)


@dataclass
class ScriptedKubelet:
    """Scripted answers of a kubelet.

    Attributes:
        free: Devices by resource.
        given: Devices of a pod by namespace, name and resource.
        broken: Answer with errors only.
    """

    free: dict[str, list[str]] = field(default_factory=dict)
    given: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)
    broken: bool = False

    def answer(self, method: str) -> bytes:
        """Return the message that answers a method."""
        if method.endswith("/GetAllocatableResources"):
            # The message includes core numbers; our side does not know that field.
            return b"".join(text(1, _devices(*it)) for it in self.free.items()) + b"\x10\x07"
        return b"".join(
            text(
                1,
                text(1, name)
                + text(2, namespace)
                + text(3, text(1, "worker") + text(2, _devices(resource, ids))),
            )
            for (namespace, name, resource), ids in self.given.items()
        )

    @contextmanager
    def serve(self, socket: Path) -> Iterator[Path]:
        """Answer on a socket until the end."""
        server = grpc.server(ThreadPoolExecutor(2))
        server.add_generic_rpc_handlers((_Handler(self),))
        server.add_insecure_port(f"unix://{socket}")
        server.start()
        try:
            yield socket
        finally:
            server.stop(0).wait()


def _devices(resource: str, ids: list[str]) -> bytes:
    return text(1, resource) + b"".join(text(2, it) for it in ids)


class _Handler(grpc.GenericRpcHandler):  # type: ignore[misc]
    def __init__(self, kubelet: ScriptedKubelet) -> None:
        self._kubelet = kubelet

    def service(self, details: Any) -> Any:
        if not details.method.startswith("/v1.PodResourcesLister/"):
            return None

        def answer(_question: bytes, context: Any) -> bytes:
            if self._kubelet.broken:
                context.abort(grpc.StatusCode.UNAVAILABLE, "it starts")
            return self._kubelet.answer(details.method)

        return grpc.unary_unary_rpc_method_handler(answer)
