"""Takes the GPUs of this server from its present and future processes; the server continues.

A process has its GPUs by a variable set at its start. So kernels are restarted, and idle shells are
closed: the next command in them would still use the GPUs.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Iterable, MutableMapping
from contextlib import suppress
from typing import Any

import psutil

HIDDEN = {"CUDA_VISIBLE_DEVICES": ""}
"""Variables of processes without a GPU: an empty list hides all GPUs, no variable shows all."""

log = logging.getLogger(__name__)


def hide(environ: MutableMapping[str, str]) -> None:
    """Hide the GPUs from all processes that this server starts from now on."""
    environ.update(HIDDEN)


async def restart_kernels(manager: Any) -> int:
    """Restart all kernels gracefully without GPUs; return their number.

    A kernel that cannot be restarted is ended.
    """
    kernels = list(manager.list_kernel_ids())
    await asyncio.gather(*(_restart(manager, each) for each in kernels))
    return len(kernels)


async def _restart(manager: Any, kernel_id: str) -> None:
    kernel = manager.get_kernel(kernel_id)
    try:
        # The manager's own restart would use the variables of the kernel's first start.
        await kernel.restart_kernel(now=False, env={**_variables(kernel), **HIDDEN})
    except Exception:  # any error: no kernel may continue with the GPUs
        log.exception("kernel %s could not be restarted without its GPUs", kernel_id)
        await manager.shutdown_kernel(kernel_id, now=True)


def _variables(kernel: Any) -> dict[str, str]:
    """Return the variables of a kernel's process; if it has ended, those of a new one."""
    pid = getattr(kernel.provisioner, "pid", None)
    with suppress(psutil.Error):
        if pid:
            return dict(psutil.Process(pid).environ())
    return dict(os.environ)


async def close_terminals(manager: Any, waiting: Iterable[int]) -> None:
    """Close idle shells, in open terminals and elsewhere.

    Args:
        manager: Jupyter's terminal manager, or None.
        waiting: PIDs of the shells.
    """
    left = set(waiting)
    for name, terminal in list({} if manager is None else manager.terminals.items()):
        if terminal.ptyproc.pid in left:
            left.discard(terminal.ptyproc.pid)
            await manager.terminate(name, force=True)
    for pid in left:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGHUP)
