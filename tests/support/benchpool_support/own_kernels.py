"""Kernels of a single test, without a server."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

READY_S = 120.0


@contextmanager
def own_kernel(env: Mapping[str, str], folder: Path) -> Iterator[BlockingKernelClient]:
    """Run a kernel with this environment in a folder until the block ends.

    It communicates by sockets in a folder of its own. With TCP ports, another test might take a
    chosen port before the kernel listens on it.
    """
    with tempfile.TemporaryDirectory(prefix="kernel-") as own:
        manager = KernelManager(
            kernel_name="python3",
            transport="ipc",
            ip=f"{own}/s",
            connection_file=f"{own}/kernel.json",
        )
        manager.start_kernel(env=dict(env), cwd=str(folder))
        try:
            client = manager.client()
            client.start_channels()
            try:
                client.wait_for_ready(timeout=READY_S)
                yield client
            finally:
                client.stop_channels()
        finally:
            manager.shutdown_kernel(now=True)


class KernelSession:
    """Kernel and the outputs of its cells."""

    def __init__(self, client: BlockingKernelClient) -> None:
        self.client = client

    def run(self, code: str) -> list[dict[str, Any]]:
        """Run a cell and return its outputs, with the kind in each."""
        outputs: list[dict[str, Any]] = []

        def take(message: dict[str, Any]) -> None:
            if message["msg_type"] in {"stream", "display_data", "execute_result", "error"}:
                outputs.append({"kind": message["msg_type"], **message["content"]})

        self.client.execute_interactive(code, output_hook=take, timeout=120)
        return outputs

    def text(self, code: str) -> str:
        """Run a cell and return its printed text or its result."""
        return "".join(
            each.get("text", "") or each.get("data", {}).get("text/plain", "")
            for each in self.run(code)
        )
