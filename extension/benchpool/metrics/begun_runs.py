"""Tells the pool which runs of trackers this job began, by the file of ``BENCHPOOL_RUNS_FILE``.

The pool links to them, and has those closed that a killed process left open
(``benchpool.metrics.close_runs``). The file lies in the job's own folder, for its own account.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

MOST = 40
"""At most this many runs are kept in the file: those that are open, and the newest."""


def told() -> list[dict[str, Any]]:
    """Return the runs of the file, the newest last; empty outside a job."""
    try:
        said = json.loads(Path(os.environ["BENCHPOOL_RUNS_FILE"]).read_text("utf-8"))
        return [run for run in said["runs"] if isinstance(run, dict)]
    except (KeyError, OSError, TypeError, ValueError):
        return []


def begun(
    tracker: str, run: str, *, url: str | None = None, store: str | None = None, closable: bool
) -> None:
    """Tell of a run that begins, or goes on. Never fails.

    Args:
        run: Its id in the tracker. ``url``: where people look at it.
        store: The address by which it is closed, where the job's variables do not say it.
        closable: Somebody must say that it has ended.
    """
    if store is not None and has_password(store):
        store, closable = None, False  # nothing of that is written to a disk
    page = None if url is None else without_keys(url)
    entry = {"tracker": tracker, "id": run, "url": page, "store": store, "open": closable}
    _write([*(one for one in told() if not _is(one, tracker, run)), entry])


def ended(tracker: str, run: str) -> None:
    """Tell that a run has its status. Never fails."""
    runs = told()
    if any(_is(one, tracker, run) and one.get("open") for one in runs):
        _write([{**one, "open": False} if _is(one, tracker, run) else one for one in runs])


def has_password(address: str) -> bool:
    """Tell whether an address holds a user or a password.

    >>> has_password("https://joe:pw@tracker"), has_password("sqlite:////home/joe/mlflow.db")
    (True, False)
    """
    try:
        return "@" in urlsplit(address).netloc
    except ValueError:
        return True


def without_keys(url: str) -> str | None:
    """Return an address without what may be a key: user, password and query.

    >>> without_keys("https://joe:pw@tracker:5000/?write_token=s3cret#/runs/1")
    'https://tracker:5000/#/runs/1'
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()


def _is(entry: dict[str, Any], tracker: str, run: str) -> bool:
    return entry.get("tracker") == tracker and entry.get("id") == run


def _write(runs: list[dict[str, Any]]) -> None:
    path = os.environ.get("BENCHPOOL_RUNS_FILE")
    if not path:
        return
    left_open = [one for one in runs if one.get("open")][-MOST:]
    kept = [one for one in runs if one in left_open or one in runs[-(MOST - len(left_open)) :]]
    said = json.dumps({"python": sys.executable, "runs": kept})
    with suppress(OSError):
        Path(f"{path}.new").write_text(said, "utf-8")
        os.replace(f"{path}.new", path)
