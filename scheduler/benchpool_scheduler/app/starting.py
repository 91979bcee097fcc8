"""What the service answers while it starts, or cannot: the page says how far it is, or what to do.

The Hub takes a service that does not answer within 30 seconds for broken, and ends. So the address
of the service answers from its first moment on.
"""

from __future__ import annotations

from html import escape
from typing import Any

import msgspec
from tornado.web import Application, RequestHandler

from benchpool_scheduler.app import serving
from benchpool_scheduler.app.start_status import StartReport, StartStatus
from benchpool_scheduler.errors import Unavailable

RETRY_S = 2

_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta http-equiv="refresh" content="3"><title>benchpool is starting</title>
<h1>benchpool {heading}</h1><p>{sentence}</p>
<p>Jobs and notebook servers that run go on meanwhile. This page looks again by itself.</p>
"""


def application(prefix: str, report: StartReport, cookies: bytes = b"starting") -> Application:
    """Return what answers until the pool is open."""
    rules: list[Any] = [
        (rf"{prefix}api/.*", _Call, {"report": report}),
        (r".*", _Page, {"report": report}),
    ]
    return serving.application(rules, cookies)


def _public(now: StartStatus) -> str:
    """Return what anybody may read: why a start failed may name files, and is for the log."""
    if now.failed is None:
        return now.sentence
    return (
        "The scheduler cannot start at the moment, and tries again: an administrator finds the "
        "reason where `benchpool up` runs, and in the log of the Hub."
    )


class _Answering(RequestHandler):
    def initialize(self, report: StartReport) -> None:
        self._report = report

    def set_default_headers(self) -> None:
        self.clear_header("Server")
        self.set_header("Cache-Control", "no-store")
        self.set_header("Retry-After", str(RETRY_S))

    def check_xsrf_cookie(self) -> None:
        """Nothing can be changed here."""

    def _answer(self) -> None:
        raise NotImplementedError

    def get(self) -> None:
        self._answer()

    post = put = delete = patch = head = options = get


class _Call(_Answering):
    def _answer(self) -> None:
        now = self._report.now
        error = Unavailable(
            f"{_public(now)} Running jobs go on; try again in a few seconds.",
            code="starting" if now.failed is None else "cannot-start",
            numbers={"done": now.done, "of": now.of},
        )
        self.set_status(503)
        self.set_header("Content-Type", "application/json")
        self.finish(msgspec.json.encode(error.as_json()))


class _Page(_Answering):
    """The Hub asks for this address, and takes anything below 500 for a service that is there."""

    def _answer(self) -> None:
        now = self._report.now
        heading = "is starting" if now.failed is None else "cannot start"
        self.set_header("Content-Security-Policy", "default-src 'none'")
        self.finish(_PAGE.format(heading=heading, sentence=escape(_public(now))))
