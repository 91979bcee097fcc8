"""Kernel with a given interpreter, and the client that runs cells in it.

nbclient's own signal handling is not used: it ends the kernel at once, and the output of the
running cell is lost. Here the kernel is started and ended without installing signal handlers.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.asynchronous import AsyncKernelClient
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

Message = dict[str, Any]
START_S = 120
SOCKET_PATH = 90
"""Maximum length of the folder for socket files; the system limit for the whole path is 107."""


LAUNCH = """\
import errno, logging, runpy
def known(record):
    error = (record.exc_info or (None, None))[1]
    return getattr(error, "errno", None) == errno.ENOTSOCK
logging.getLogger("tornado.general").addFilter(lambda record: not known(record))
runpy.run_module("ipykernel_launcher", run_name="__main__", alter_sys=True)
"""
"""Program of a kernel: ipykernel's own, with one shutdown error kept out of the job's log.

ipykernel may close its output socket before it answers the shutdown request. Then it logs "Socket
operation on non-socket" with a traceback.
"""


class KernelClient(AsyncKernelClient):  # type: ignore[misc]
    """Kernel client that is ready when the kernel has answered and its output is received.

    Jupyter's own client then also waits for 0.2 s without messages. Here messages that belong to no
    running cell are ignored, so that wait is not needed.
    """

    language_info: dict[str, Any] | None = None
    """Description of the language by the kernel: name, version, syntax highlighting."""

    async def wait_for_ready(self, timeout: float | None = None) -> None:
        """Wait until the kernel can run cells.

        Raises:
            RuntimeError: The kernel cannot run cells; the text gives the reason.
        """
        try:
            await asyncio.wait_for(self._answered(), timeout)
        except asyncio.TimeoutError:  # noqa: UP041 (Python 3.9)
            raise RuntimeError(f"it did not answer within {timeout:g} s") from None

    async def _answered(self) -> None:
        while True:
            self.kernel_info()
            with contextlib.suppress(queue.Empty):
                reply = await self.get_shell_msg(timeout=1)
                self.language_info = reply["content"].get("language_info")
                await self.get_iopub_msg(timeout=0.2)
                return
            if not await self.is_alive():
                raise RuntimeError("it ended before it answered")


class Kernels(AsyncKernelManager):  # type: ignore[misc]
    """Kernel manager that starts kernels by interpreter instead of by name."""

    def __init__(self, interpreter: str, **options: Any) -> None:
        super().__init__(**options)
        self.client_factory = KernelClient
        self._interpreter = interpreter

    @property
    def kernel_spec(self) -> KernelSpec:
        """Command of the kernel."""
        # IPython answers SystemExit with advice for interactive users; a job has none.
        quiet = ["-W", "ignore:To exit:UserWarning"]
        argv = [self._interpreter, *quiet, "-c", LAUNCH, "-f", "{connection_file}"]
        return KernelSpec(argv=argv, display_name="Python 3", language="python")


class Cells(NotebookClient):  # type: ignore[misc]
    """Client that runs cells. ``on_message`` gets each message and returns the part to keep."""

    def __init__(
        self,
        notebook: nbformat.NotebookNode,
        kernels: Kernels,
        on_message: Callable[[Message, int], Message | None],
    ) -> None:
        super().__init__(notebook, km=kernels, timeout=None, startup_timeout=START_S)
        self._on_message = on_message

    def process_message(self, msg: Message, cell: Any, cell_index: int) -> Any:
        """Process one message of the kernel."""
        kept = self._on_message(msg, cell_index)
        if kept is None:
            return None
        try:
            return super().process_message(kept, cell, cell_index)
        finally:
            _join_streams(cell.get("outputs", []))


def _join_streams(outputs: list[Any]) -> None:
    """Join the newest piece of a stream to the previous one, as a page does."""
    if len(outputs) < 2:
        return
    before, last = outputs[-2:]
    if last.get("output_type") == before.get("output_type") == "stream" and last.get(
        "name"
    ) == before.get("name"):
        before["text"] += last["text"]
        outputs.pop()


class Kernel:
    """One started kernel."""

    def __init__(self, interpreter: str, folder: Path) -> None:
        self._interpreter = interpreter
        self._folder = folder
        self._runtime = tempfile.TemporaryDirectory(prefix="benchpool-kernel-")
        inside = Path(self._runtime.name)
        options = {"connection_file": str(inside / "kernel.json")}
        # Sockets are in a private folder: other accounts of this machine cannot reach any port.
        if len(str(inside)) < SOCKET_PATH:
            options |= {"transport": "ipc", "ip": str(inside / "s")}
        self.manager = Kernels(interpreter, **options)

    async def start(self, cells: Cells, meanwhile: Callable[[], None]) -> None:
        """Start the kernel and wait until it answers. ``meanwhile`` is called while it starts."""
        await cells.async_start_new_kernel(cwd=str(self._folder), env=dict(os.environ))
        meanwhile()
        await cells.async_start_new_kernel_client()

    def terminate(self) -> None:
        """Pass SIGTERM to the kernel process."""
        pid = self._pid()
        if pid is not None:
            os.kill(pid, signal.SIGTERM)

    def status(self) -> int | None:
        """Return a dead kernel's exit status, in the form of ``Popen.returncode``, else None."""
        process = getattr(self.manager.provisioner, "process", None)
        code: int | None = None if process is None else process.poll()
        return code

    async def end(self, cells: Cells) -> None:
        """End the kernel, with a shutdown request if it still answers."""
        if cells.kc is not None:
            cells.kc.stop_channels()
        if self.manager.has_kernel:
            await self.manager.shutdown_kernel(now=not await self.manager.is_alive())
        self._runtime.cleanup()

    def _pid(self) -> int | None:
        process = getattr(self.manager.provisioner, "process", None)
        return None if process is None or process.poll() is not None else int(process.pid)
