"""What is forwarded to the scheduler. Everything else does not exist here."""

from __future__ import annotations

import re

_JOB = r"jobs/[a-z0-9]{4,26}"
FORWARDED: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("GET", re.compile(r"jobs")),
    ("POST", re.compile(r"jobs")),
    ("GET", re.compile(_JOB)),
    ("GET", re.compile(rf"{_JOB}/(why|submission|logs|logs/stream)")),
    ("POST", re.compile(rf"{_JOB}/(pause|resume|cancel|change)")),
    ("POST", re.compile(r"preview")),
    ("GET", re.compile(r"quota|status|events|health")),
)

REQUEST_HEADERS = ("Accept", "Content-Type", "Last-Event-ID")
ANSWER_HEADERS = re.compile(r"(?i)benchpool-[a-z-]+|cache-control|retry-after")
MAX_BODY = 16 * 1024 * 1024


def is_forwarded(method: str, path: str) -> bool:
    """Say whether a request goes on to the scheduler.

    >>> is_forwarded("GET", "jobs"), is_forwarded("DELETE", "leases/x")
    (True, False)
    >>> is_forwarded("GET", "jobs/../leases"), is_forwarded("GET", "config/apply")
    (False, False)
    >>> is_forwarded("POST", "jobs/7k2m/change"), is_forwarded("GET", "jobs/7k2m/change")
    (True, False)
    """
    return any(verb == method and pattern.fullmatch(path) for verb, pattern in FORWARDED)
