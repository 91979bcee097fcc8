"""Takes the GPUs of this server from all that it has started and will start; the server goes on.

A process has its GPUs by a variable that it got at its start. So kernels are started anew, and
shells that wait for a line are closed: whatever was typed there next would still use the GPUs.
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
"""Variables of what has no GPU: an empty list hides all, none would show all."""

log = logging.getLogger(__name__)


def hide(environ: MutableMapping[str, str]) -> None:
    """Have what this server starts from now on see no GPU."""
    environ.update(HIDDEN)


async def restart_kernels(manager: Any) -> int:
    """Start all kernels anew without GPUs, gently; return how many.

    A kernel that cannot be started anew is ended.
    """
    kernels = list(manager.list_kernel_ids())
    await asyncio.gather(*(_restart(manager, each) for each in kernels))
    return len(kernels)


async def _restart(manager: Any, kernel_id: str) -> None:
    kernel = manager.get_kernel(kernel_id)
    try:
        # The manager's own restart would start it with the variables of its first start.
        await kernel.restart_kernel(now=False, env={**_variables(kernel), **HIDDEN})
    except Exception:  # whatever it is: no kernel may go on with the GPUs
        log.exception("The kernel %s could not be started anew without its GPUs", kernel_id)
        await manager.shutdown_kernel(kernel_id, now=True)


def _variables(kernel: Any) -> dict[str, str]:
    """Return what a kernel was started with; of one that has ended, what it would be now."""
    pid = getattr(kernel.provisioner, "pid", None)
    with suppress(psutil.Error):
        if pid:
            return dict(psutil.Process(pid).environ())
    return dict(os.environ)


async def close_terminals(manager: Any, waiting: Iterable[int]) -> None:
    """Close the shells that wait for a line, in open terminals and elsewhere.

    Args:
        manager: Jupyter's terminal manager, None where there is none.
        waiting: Their pids.
    """
    left = set(waiting)
    for name, terminal in list({} if manager is None else manager.terminals.items()):
        if terminal.ptyproc.pid in left:
            left.discard(terminal.ptyproc.pid)
            await manager.terminate(name, force=True)
    for pid in left:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGHUP)
