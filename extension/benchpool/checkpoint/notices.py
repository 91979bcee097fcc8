"""What the pool tells this process: where to save, whether to stop, until when.

The notice file comes first, then SIGTERM. A process that asks ``told`` promises to stop by itself,
so from the first such question in a job SIGTERM only raises a flag, unless the program handles
that signal already. Nothing is installed on import, or outside a job: a program that never asks
is ended by the signal at once, which is what it wants.
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
    """Return the folder that every attempt of this job finds again; None outside a job."""
    said = os.environ.get("BENCHPOOL_CHECKPOINT_DIR")
    return Path(said) if said else None


def inside_job() -> bool:
    """Say whether the pool runs this process."""
    return "BENCHPOOL_NOTICE_FILE" in os.environ


def told() -> bool:
    """Say whether this process was told to stop, by the notice file or by SIGTERM."""
    if not inside_job():
        return False
    raise_flag_on_sigterm()
    return signalled.is_set() or Path(os.environ["BENCHPOOL_NOTICE_FILE"]).exists()


def notice() -> dict[str, Any]:
    """Return the notice (``kind``, ``deadline``, ``for``, ``text``); empty while there is none."""
    try:
        found = json.loads(Path(os.environ["BENCHPOOL_NOTICE_FILE"]).read_text("utf-8"))
    except (KeyError, OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def deadline() -> datetime | None:
    """Return until when this process must have stopped; None while nobody asks it to."""
    said = notice().get("deadline")
    if isinstance(said, (int, float)):
        return datetime.fromtimestamp(said, timezone.utc)  # noqa: UP017 (Python 3.9)
    if not isinstance(said, str):
        return None
    try:
        when = datetime.fromisoformat(said.replace("Z", "+00:00"))
    except ValueError:
        return None
    return when if when.tzinfo else when.replace(tzinfo=timezone.utc)  # noqa: UP017


def remaining() -> float | None:
    """Return the seconds until ``deadline``, never negative; None while nobody asks to stop."""
    until = deadline()
    if until is None:
        return None
    return max(0.0, (until - datetime.now(timezone.utc)).total_seconds())  # noqa: UP017


def raise_flag_on_sigterm() -> None:
    """From now on SIGTERM is remembered instead of ending the process, where nobody handles it."""
    if _may_handle():
        signal.signal(signal.SIGTERM, _raise_flag)


def end_on_sigterm() -> None:
    """From now on SIGTERM ends the process again, unless the program asks or handles it itself.

    One that came in the meantime does so at once.
    """
    main = threading.current_thread() is threading.main_thread()
    if main and not _asked.is_set() and signal.getsignal(signal.SIGTERM) is _raise_flag:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if signalled.is_set():
            os.kill(os.getpid(), signal.SIGTERM)


class DeferredSigterm:
    """Puts SIGTERM off while a checkpoint is written; a signal that came is delivered after."""

    def __init__(self) -> None:
        self._holds = False

    def __enter__(self) -> None:
        self._holds = inside_job() and _may_handle()
        if self._holds:
            signal.signal(signal.SIGTERM, _raise_flag)

    def __exit__(self, *_: object) -> None:
        # Somebody may have asked ``told`` in between; then the flag is what it waits for.
        if self._holds and not _asked.is_set():
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            if signalled.is_set():
                os.kill(os.getpid(), signal.SIGTERM)


_asked = threading.Event()


def asked() -> None:
    """Remember that the program asks whether to stop, so that it will do so by itself."""
    _asked.set()


def _may_handle() -> bool:
    # Only the main thread may install handlers; one of the program itself stays.
    main = threading.current_thread() is threading.main_thread()
    return main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def _raise_flag(_number: int, _frame: FrameType | None) -> None:
    signalled.set()
