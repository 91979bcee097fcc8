"""Answers of the service while it starts or cannot start: a page with its progress or a remedy.

The Hub takes a service that does not answer within 30 seconds for broken, and exits. Therefore the
service answers from the first moment.
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
<p>Running jobs and notebook servers continue. This page reloads itself.</p>
"""


def application(prefix: str, report: StartReport, cookies: bytes = b"starting") -> Application:
    """Return the application that answers until the pool is open."""
    rules: list[Any] = [
        (rf"{prefix}api/.*", _Call, {"report": report}),
        (r".*", _Page, {"report": report}),
    ]
    return serving.application(rules, cookies)


def _public(now: StartStatus) -> str:
    """Return the public text. The reason of a failure may name files, so only the log has it."""
    if now.failed is None:
        return now.sentence
    return (
        "The scheduler cannot start at the moment and tries again. An administrator finds the "
        "reason in the output of `benchpool up` and in the log of the Hub."
    )


class _Answering(RequestHandler):
    def initialize(self, report: StartReport) -> None:
        self._report = report

    def set_default_headers(self) -> None:
        self.clear_header("Server")
        self.set_header("Cache-Control", "no-store")
        self.set_header("Retry-After", str(RETRY_S))

    def check_xsrf_cookie(self) -> None:
        """Skip the check: these answers change nothing."""

    def _answer(self) -> None:
        raise NotImplementedError

    def get(self) -> None:
        self._answer()

    post = put = delete = patch = head = options = get


class _Call(_Answering):
    def _answer(self) -> None:
        now = self._report.now
        error = Unavailable(
            f"{_public(now)} Running jobs continue. Try again in a few seconds.",
            code="starting" if now.failed is None else "cannot-start",
            numbers={"done": now.done, "of": now.of},
        )
        self.set_status(503)
        self.set_header("Content-Type", "application/json")
        self.finish(msgspec.json.encode(error.as_json()))


class _Page(_Answering):
    """Page for the Hub's check, which accepts any status below 500."""

    def _answer(self) -> None:
        now = self._report.now
        heading = "is starting" if now.failed is None else "cannot start"
        self.set_header("Content-Security-Policy", "default-src 'none'")
        self.finish(_PAGE.format(heading=heading, sentence=escape(_public(now))))
