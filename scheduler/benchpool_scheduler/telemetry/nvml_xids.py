"""Errors that the driver tells of once (XIDs): waited for in a thread of its own."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from typing import Any

import pynvml

WAIT_MS = 1000
"""The driver may be asked to wait for so long; after it the thread sees whether it is wanted."""


class XidWatch:
    """Waits for critical errors of GPUs, and keeps the newest of each until it is taken.

    Where the driver has no events, or refuses them, nothing is ever told.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[str, int] = {}
        self._watched: frozenset[str] = frozenset()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, handles: Mapping[str, Any]) -> None:
        """Watch these GPUs from now on, by UUID; the same ones again change nothing."""
        wanted = frozenset(handles)
        alive = self._thread is not None and self._thread.is_alive()
        if wanted == self._watched and (alive or not wanted):
            return
        self._end()
        self._watched = wanted
        registered = _register(handles)
        if registered is not None:
            self._stop = threading.Event()
            arguments = (registered, self._stop)
            self._thread = threading.Thread(
                target=self._wait, args=arguments, name="benchpool-xids", daemon=True
            )
            self._thread.start()

    def take(self, gpu: str) -> int | None:
        """Return the newest error of a GPU that was not taken yet."""
        with self._lock:
            return self._found.pop(gpu, None)

    def close(self) -> None:
        """Wait no longer; ends within a second or so."""
        self._end()
        self._watched = frozenset()

    def _end(self) -> None:
        self._stop.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(2 * WAIT_MS / 1000)

    def _wait(self, events: Any, stop: threading.Event) -> None:
        try:
            while not stop.is_set():
                try:
                    event = pynvml.nvmlEventSetWait_v2(events, WAIT_MS)
                    gpu = str(pynvml.nvmlDeviceGetUUID(event.device))
                except pynvml.NVMLError_Timeout:
                    continue
                except pynvml.NVMLError:
                    return  # begun again where handles are still good
                if event.eventType == pynvml.nvmlEventTypeXidCriticalError:
                    with self._lock:
                        self._found[gpu] = int(event.eventData)
        finally:
            with contextlib.suppress(pynvml.NVMLError):
                pynvml.nvmlEventSetFree(events)


def _register(handles: Mapping[str, Any]) -> Any:
    """Return a set of events of the GPUs that have them, None for none."""
    if not handles:
        return None
    try:
        events = pynvml.nvmlEventSetCreate()
    except pynvml.NVMLError:
        return None
    some = False
    for handle in handles.values():
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlDeviceRegisterEvents(handle, pynvml.nvmlEventTypeXidCriticalError, events)
            some = True
    if not some:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlEventSetFree(events)
    return events if some else None
