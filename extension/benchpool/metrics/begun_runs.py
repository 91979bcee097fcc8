"""Reports to the pool the tracker runs that this job began, in the file ``BENCHPOOL_RUNS_FILE``.

The pool links to the runs, and closes those that a killed process left open
(``benchpool.metrics.close_runs``). The file is in the job's own folder, owned by its account.
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
"""Maximum number of runs in the file: the open ones and the newest are kept."""


def recorded() -> list[dict[str, Any]]:
    """Return the runs in the file, the newest last; empty outside a job."""
    try:
        document = json.loads(Path(os.environ["BENCHPOOL_RUNS_FILE"]).read_text("utf-8"))
        return [run for run in document["runs"] if isinstance(run, dict)]
    except (KeyError, OSError, TypeError, ValueError):
        return []


def begun(
    tracker: str, run: str, *, url: str | None = None, store: str | None = None, closable: bool
) -> None:
    """Record a run that begins or resumes. Never raises.

    Args:
        run: Its ID in the tracker.
        url: Address of its page.
        store: Address used to close it, if the job's variables do not contain it.
        closable: The run must be closed explicitly.
    """
    if store is not None and has_password(store):
        store, closable = None, False  # no part of that is written to disk
    page = None if url is None else without_keys(url)
    entry = {"tracker": tracker, "id": run, "url": page, "store": store, "open": closable}
    _write([*(one for one in recorded() if not _is(one, tracker, run)), entry])


def ended(tracker: str, run: str) -> None:
    """Record that a run has its final status. Never raises."""
    runs = recorded()
    if any(_is(one, tracker, run) and one.get("open") for one in runs):
        _write([{**one, "open": False} if _is(one, tracker, run) else one for one in runs])


def has_password(address: str) -> bool:
    """Return whether an address contains a user or a password.

    >>> has_password("https://joe:pw@tracker"), has_password("sqlite:////home/joe/mlflow.db")
    (True, False)
    """
    try:
        return "@" in urlsplit(address).netloc
    except ValueError:
        return True


def without_keys(url: str) -> str | None:
    """Return an address without user, password and query, which may contain keys.

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
    text = json.dumps({"python": sys.executable, "runs": kept})
    with suppress(OSError):
        Path(f"{path}.new").write_text(text, "utf-8")
        os.replace(f"{path}.new", path)
