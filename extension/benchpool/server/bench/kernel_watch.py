"""Kernels of this server: their number, the busy ones, and the number of cells they have run.

A separate connection listens to each kernel, so no browser has to be open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchpool.server.bench.running_cells import RunningCells


@dataclass(frozen=True, slots=True)
class KernelActivity:
    """Number of kernels, number of busy ones, and cells run since the server started."""

    kernels: int = 0
    busy: int = 0
    executions: int = 0


@dataclass(slots=True)
class KernelWatch:
    """Listener to all kernels of a Jupyter server's kernel manager."""

    manager: Any
    _listeners: dict[str, tuple[RunningCells, Any]] = field(default_factory=dict)
    _gone: int = 0

    def look(self) -> KernelActivity:
        """Return the activity of the kernels, and listen to new ones."""
        ids = list(self.manager.list_kernel_ids())
        for gone in self._listeners.keys() - set(ids):
            cells, stream = self._listeners.pop(gone)
            self._gone += cells.executions
            stream.close()
        for new in set(ids) - self._listeners.keys():
            self._listen(new)
        ran = self._gone + sum(cells.executions for cells, _ in self._listeners.values())
        return KernelActivity(len(ids), sum(map(self._is_busy, ids)), ran)

    def _listen(self, kernel_id: str) -> None:
        kernel = self.manager.get_kernel(kernel_id)
        if not getattr(kernel, "iopub_port", 0):
            return  # it has no ports yet, or runs elsewhere
        cells, stream = RunningCells(), kernel.connect_iopub()

        def on_message(frames: Sequence[Any]) -> None:
            # Large outputs are not copied: only the parts that are read.
            cells.read(_Parts(frames))

        stream.on_recv(on_message, copy=False)
        self._listeners[kernel_id] = (cells, stream)

    def _is_busy(self, kernel_id: str) -> bool:
        listener = self._listeners.get(kernel_id)
        state = getattr(self.manager.get_kernel(kernel_id), "execution_state", None)
        # Jupyter's own state covers the time before this listener started.
        return state == "busy" or (listener is not None and bool(listener[0].running))


class _Parts(Sequence[bytes]):
    """Parts of a message, copied when they are read."""

    def __init__(self, frames: Sequence[Any]) -> None:
        self._frames = frames

    def __len__(self) -> int:
        return len(self._frames)

    def __getitem__(self, at: Any) -> Any:
        return self._frames[at].bytes
