"""Reports of logins and logouts from the Hub to the scheduler's audit trail.

Logins do not wait for a report. While the scheduler is down, as during the Hub's own start, reports
are retried.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from typing import Any, Literal

import msgspec

from benchpool_scheduler.client import AsyncClient, Credentials
from benchpool_scheduler.client.name_lookup import ProxyAddresses
from benchpool_scheduler.contract import AuditOutcome, LoginReport
from benchpool_scheduler.contract.forwarding import Proxies
from benchpool_scheduler.errors import BenchpoolError
from benchpool_spawner.request_address import THIS_MACHINE, address_of

log = logging.getLogger(__name__)

PATIENCE_S = 120.0
"""Retry timeout of a report while the scheduler is down, in seconds."""

MOST_UNSENT = 1000
"""Maximum number of pending reports. Further ones are only in the Hub's log."""


class LoginReports:
    """Reporter of logins, used as an authenticator's ``post_auth_hook``.

    The Hub has no hook for logouts, so ``report_logouts`` patches its handler.

    Args:
        url: Address of the scheduler. ``token``: the Hub's token for it.
        proxies: Proxies that are trusted to report client addresses.
    """

    def __init__(self, url: str, token: str, proxies: Proxies = THIS_MACHINE) -> None:
        self._proxies = ProxyAddresses(proxies)
        self._credentials = Credentials(url, token, source="hub")
        self._client: AsyncClient | None = None
        self._sending: set[asyncio.Task[None]] = set()

    async def __call__(self, authenticator: Any, handler: Any, model: Any) -> Any:
        """Report a successful login, and allow it."""
        way = type(authenticator).__name__
        self.report(str(model["name"]), AuditOutcome.DONE, way, handler)
        return model

    def report_logouts(self) -> None:
        """Report each logout too, for all authenticators whose handler inherits the Hub's."""
        from jupyterhub.handlers.login import LogoutHandler

        log_out = LogoutHandler.default_handle_logout

        @functools.wraps(log_out)
        async def reported(handler: Any) -> None:
            user = handler.current_user
            await log_out(handler)
            if user is not None:
                self.report(user.name, AuditOutcome.DONE, "", handler, "logout")

        LogoutHandler.default_handle_logout = reported

    def report(
        self,
        user: str,
        outcome: AuditOutcome,
        way: str,
        handler: Any,
        action: Literal["login", "logout"] = "login",
    ) -> None:
        """Report one login or logout in the background, with retries."""
        if len(self._sending) >= MOST_UNSENT:
            log.warning("audit trail not notified of a %s of %.255r: %s", action, user, outcome)
            return
        report = LoginReport(user[:255], outcome, way[:64], "", action)
        task = asyncio.get_running_loop().create_task(self._send(report, handler.request))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    def address(self, request: Any) -> str:
        """Return the origin of a request, as far as a trusted proxy reports it."""
        return address_of(request, self._proxies.now)

    async def _send(self, report: LoginReport, request: Any) -> None:
        await self._proxies.look_up()
        report = msgspec.structs.replace(report, address=self.address(request)[:64])
        if self._client is None:
            self._client = AsyncClient(self._credentials, patience_s=PATIENCE_S)
        try:
            await self._client.report_login(report)
        except BenchpoolError as failed:
            log.warning(
                "audit trail not notified of a %s of %.255r (%s): %s",
                report.action,
                report.user,
                report.outcome,
                failed,
            )
