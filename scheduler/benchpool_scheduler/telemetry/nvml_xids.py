"""Driver errors (XIDs), which the driver reports once; a thread waits for them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from typing import Any

import pynvml

WAIT_MS = 1000
"""Timeout of one wait, in milliseconds; after it the thread checks whether it must stop."""


class XidWatch:
    """Watch of critical GPU errors, which keeps the newest of each GPU until it is taken.

    Without the driver's support for events, it never returns an error.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[str, int] = {}
        self._watched: frozenset[str] = frozenset()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, handles: Mapping[str, Any]) -> None:
        """Watch these GPUs, by UUID; a repeated call with the same GPUs changes nothing."""
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
        """Return and clear the newest error of a GPU."""
        with self._lock:
            return self._found.pop(gpu, None)

    def close(self) -> None:
        """Stop the thread, which ends within about a second."""
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
                    return  # restarted when the handles are valid again
                if event.eventType == pynvml.nvmlEventTypeXidCriticalError:
                    with self._lock:
                        self._found[gpu] = int(event.eventData)
        finally:
            with contextlib.suppress(pynvml.NVMLError):
                pynvml.nvmlEventSetFree(events)


def _register(handles: Mapping[str, Any]) -> Any:
    """Return an event set of the GPUs that support events, or None."""
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
