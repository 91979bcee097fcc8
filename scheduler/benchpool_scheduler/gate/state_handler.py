"""Long poll of a waiting page: the answer comes when the state of the service differs."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from tornado.web import HTTPError, RequestHandler

from benchpool_scheduler.errors import (
    BenchpoolError,
    InvalidInput,
    NotAuthenticated,
    ServerFault,
    Unavailable,
)
from benchpool_scheduler.gate import refusals, waiting
from benchpool_scheduler.gate.desk import GateDesk

HELD_S = 25.0
"""Timeout of a poll, in seconds; proxies close connections that are silent for 30 s or more."""


class ServiceStateHandler(RequestHandler):
    """State and sentence of a service, for a page with its XSRF token or a program with a token."""

    def initialize(self, desk: GateDesk) -> None:
        """Set the shared state of the gate."""
        self._desk = desk
        self.gone = asyncio.Event()

    def set_default_headers(self) -> None:
        """Set the headers of the gate's own answers."""
        self.clear_header("Server")
        for name, value in refusals.HEADERS.items():
            self.set_header(name, value)

    async def get(self, name: str) -> None:
        """Answer immediately if the page has seen another state, else at the next change.

        A page that has seen a state waits for the service, so it wakes it like a request.
        """
        desk = self._desk
        caller = await desk.identity.authenticate(self)
        if caller is None:
            raise NotAuthenticated("Your session has ended. Open the page again to log in.")
        desk.limits.request(caller)
        seen = self.get_query_argument("seen", "")
        with desk.place_of(caller, self.gone):
            if seen:
                route = await waiting.seen_changed(
                    desk.directory, desk.figures, name, caller, self.gone, seen, HELD_S
                )
            else:
                route = desk.directory.route(name, caller)
        self.set_header("Content-Type", "application/json; charset=utf-8")
        self.finish(
            msgspec.json.encode(
                {
                    "ready": waiting.answers(route),
                    "state": route.state.value,
                    "heading": waiting.HEADINGS[route.state],
                    "sentence": waiting.sentence(route),
                    "seen": waiting.fingerprint(route),
                }
            )
        )

    def log_exception(self, typ: Any, value: BaseException | None, tb: Any) -> None:
        """Log internal errors only; a refusal is a regular answer."""
        if not isinstance(value, BenchpoolError):
            super().log_exception(typ, value, tb)

    def send_error(self, status_code: int = 500, **kwargs: Any) -> None:
        """Answer with the status of the error."""
        failed = kwargs.get("exc_info", (None, None, None))[1]
        if isinstance(failed, BenchpoolError):
            status_code = failed.http_status
        super().send_error(status_code, **kwargs)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer with an error object."""
        failed = kwargs.get("exc_info", (None, None, None))[1]
        if not isinstance(failed, BenchpoolError):
            if isinstance(failed, HTTPError) and status_code < 500:
                failed = InvalidInput("The request cannot be read.", code="malformed")
            else:
                failed = ServerFault("The gate failed to answer this request. See its log.")
        if isinstance(failed, Unavailable):
            self.set_header("Retry-After", str(failed.numbers.get("retry_after_s", 1)))
        self.finish(refusals.as_json(self, failed))

    def on_connection_close(self) -> None:
        """Stop waiting."""
        self.gone.set()
