"""Allow-list of requests forwarded to the scheduler: the operations offered to JupyterLab.

All other requests are answered as not found.
"""

from __future__ import annotations

import re

from benchpool_scheduler.contract.operations import OPERATIONS

FORWARDED: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (one.method, re.compile(one.pattern)) for one in OPERATIONS if one.lab
)

REQUEST_HEADERS = ("Accept", "Content-Type", "Last-Event-ID")
ANSWER_HEADERS = re.compile(r"(?i)benchpool-[a-z-]+|cache-control|retry-after")
MAX_BODY = 16 * 1024 * 1024


def is_forwarded(method: str, path: str) -> bool:
    """Return whether a request is forwarded to the scheduler.

    >>> is_forwarded("GET", "jobs"), is_forwarded("DELETE", "leases/x")
    (True, False)
    >>> is_forwarded("GET", "jobs/../leases"), is_forwarded("GET", "config/apply")
    (False, False)
    >>> is_forwarded("POST", "jobs/7k2m/change"), is_forwarded("GET", "jobs/7k2m/change")
    (True, False)
    """
    return any(verb == method and pattern.fullmatch(path) for verb, pattern in FORWARDED)
