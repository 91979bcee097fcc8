"""Instructions of the pool for this process: where to save, whether to stop, and the deadline.

The notice file comes first, then SIGTERM. A process that calls ``told`` promises to stop by itself.
So from the first such call in a job, SIGTERM only sets a flag, unless the program handles that
signal already. Nothing is installed on import, or outside a job: a program that never calls it is
ended by the signal at once.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from datetime import datetime, timezone
from pathlib import Path
from types import FrameType
from typing import Any

signalled = threading.Event()


def directory() -> Path | None:
    """Return the folder that every attempt of this job shares, or None outside a job."""
    folder = os.environ.get("BENCHPOOL_CHECKPOINT_DIR")
    return Path(folder) if folder else None


def inside_job() -> bool:
    """Return whether this process runs in a job of the pool."""
    return "BENCHPOOL_NOTICE_FILE" in os.environ


def stop_requested() -> bool:
    """Return whether this process was asked to stop, by the notice file or by SIGTERM."""
    if not inside_job():
        return False
    raise_flag_on_sigterm()
    return signalled.is_set() or Path(os.environ["BENCHPOOL_NOTICE_FILE"]).exists()


def notice() -> dict[str, Any]:
    """Return the notice (``kind``, ``deadline``, ``for``, ``text``), or an empty dict."""
    try:
        found = json.loads(Path(os.environ["BENCHPOOL_NOTICE_FILE"]).read_text("utf-8"))
    except (KeyError, OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def deadline() -> datetime | None:
    """Return the time by which this process must stop, or None if no stop was requested."""
    value = notice().get("deadline")
    if isinstance(value, (int, float)):
        return datetime.fromtimestamp(value, timezone.utc)  # noqa: UP017 (Python 3.9)
    if not isinstance(value, str):
        return None
    try:
        when = datetime.fromisoformat(value.replace("Z", "+00:00"))
    except ValueError:
        return None
    return when if when.tzinfo else when.replace(tzinfo=timezone.utc)  # noqa: UP017


def remaining() -> float | None:
    """Return the seconds until ``deadline``, at least 0, or None if no stop was requested."""
    until = deadline()
    if until is None:
        return None
    return max(0.0, (until - datetime.now(timezone.utc)).total_seconds())  # noqa: UP017


def raise_flag_on_sigterm() -> None:
    """Let SIGTERM set a flag instead of ending the process, unless the program handles it."""
    if _may_handle():
        signal.signal(signal.SIGTERM, _raise_flag)


def end_on_sigterm() -> None:
    """Let SIGTERM end the process again, unless the program checks for stops or handles it itself.

    A signal that arrived in the meantime ends the process at once.
    """
    main = threading.current_thread() is threading.main_thread()
    if main and not _asked.is_set() and signal.getsignal(signal.SIGTERM) is _raise_flag:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if signalled.is_set():
            os.kill(os.getpid(), signal.SIGTERM)


class DeferredSigterm:
    """Context manager that defers SIGTERM while a checkpoint is written, and delivers it after."""

    def __init__(self) -> None:
        self._holds = False

    def __enter__(self) -> None:
        self._holds = inside_job() and _may_handle()
        if self._holds:
            signal.signal(signal.SIGTERM, _raise_flag)

    def __exit__(self, *_: object) -> None:
        # If the program called ``told`` in between, it relies on the flag.
        if self._holds and not _asked.is_set():
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            if signalled.is_set():
                os.kill(os.getpid(), signal.SIGTERM)


_asked = threading.Event()


def asked() -> None:
    """Record that the program checks whether to stop, and so will stop by itself."""
    _asked.set()


def _may_handle() -> bool:
    # Only the main thread may install handlers; a handler of the program stays.
    main = threading.current_thread() is threading.main_thread()
    return main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def _raise_flag(_number: int, _frame: FrameType | None) -> None:
    signalled.set()
