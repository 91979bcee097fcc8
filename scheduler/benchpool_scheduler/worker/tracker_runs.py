"""Runs that a worker began in trackers, from its runs file: read as untrusted input.

The file is ``{"python": PATH, "runs": [RUN]}`` with the newest run last, where a run is
``{"tracker": NAME, "id": ID, "url": ADDRESS, "open": BOOL}``. Only valid names and addresses that a
browser may follow are shown. Runs left open by a killed worker are closed by a step under its own
account (``supervisor.last_step``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from . import records

MOST = 8
"""Most runs of a job that are shown: the newest."""
NAME_LIMIT = 30
ADDRESS_LIMIT = 1_000
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9 &._-]{{0,{NAME_LIMIT - 1}}}")
_ADDRESS = re.compile(r"https?://[!#-;=?-\[\]_a-z~]+")
"""Addresses that a browser may follow: http or https, ASCII characters, no quotes, no spaces."""


class ReportedRun(NamedTuple):
    """A run in a tracker; ``url`` is its web page."""

    tracker: str
    url: str


def read_runs(exchange: Path) -> tuple[ReportedRun, ...]:
    """Return the runs of the file with valid addresses, the newest last."""
    pairs = ((run.get("tracker"), run.get("url")) for run in _runs(str(exchange)))
    return checked(pairs)


def checked(pairs: Iterable[tuple[object, object]]) -> tuple[ReportedRun, ...]:
    """Return the valid names and addresses: the newest, each address once.

    >>> checked([("mlflow", "http://ml:5000/#/experiments/0/runs/1"), ("x", "javascript:alert(1)")])
    (ReportedRun(tracker='mlflow', url='http://ml:5000/#/experiments/0/runs/1'),)
    """
    found: dict[str, ReportedRun] = {}
    for tracker, url in pairs:
        address = safe_address(url)
        if address and isinstance(tracker, str) and _NAME.fullmatch(tracker):
            found.pop(address, None)
            found[address] = ReportedRun(tracker, address)
    return tuple(found.values())[-MOST:]


def safe_address(url: object) -> str | None:
    """Return an address without user, password and query, which may contain keys; None if invalid.

    >>> safe_address("https://joe:pw@wandb.ai/joe/p/runs/1?apiKey=s3cret")
    'https://wandb.ai/joe/p/runs/1'
    >>> safe_address("file:///etc/passwd"), safe_address("https://a b/"), safe_address("http://")
    (None, None, None)
    """
    if not isinstance(url, str) or len(url) > ADDRESS_LIMIT or not _ADDRESS.fullmatch(url):
        return None
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 (it raises where the port is no number)
    except ValueError:
        return None
    if not parts.hostname:
        return None
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()


def signature(exchange: Path) -> tuple[int, int, int] | None:
    """Return a value that changes when the file is rewritten, or None without a file."""
    try:
        facts = os.lstat(exchange / records.RUNS)
    except OSError:
        return None
    return facts.st_ino, facts.st_mtime_ns, facts.st_size


def _runs(exchange: str) -> Iterator[dict[object, object]]:
    value = records.read(exchange, records.RUNS)
    runs = None if value is None else value.get("runs")
    for run in runs if isinstance(runs, list) else ():
        if isinstance(run, dict):
            yield run
