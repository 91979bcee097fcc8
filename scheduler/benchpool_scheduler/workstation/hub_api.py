"""Client of the Hub for ``benchpool up``: readiness, tokens and servers."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import httpx

from benchpool_scheduler.errors import Unavailable

ANSWER_TIMEOUT_S = 45.0
"""Timeout of one request, in seconds: a Hub may wait 30 s for a lock on its database."""

POLL_S = 0.1
START_HEADER = "X-Benchpool-Start"
"""Header in which a Hub of ``benchpool up`` sends the identity of its start."""


class HubApi:
    """The Hub's REST API with one token.

    Args:
        url: The API's address, ending in ``/hub/api``.
        token: A token of the Hub.
    """

    def __init__(self, url: str, token: str) -> None:
        self._http = httpx.AsyncClient(
            base_url=url.rstrip("/") + "/",
            headers={"Authorization": f"token {token}"},
            timeout=ANSWER_TIMEOUT_S,
            trust_env=False,
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        try:
            return await self._http.request(method, path, **options)
        except httpx.HTTPError as failed:
            raise Unavailable(
                f"The Hub at {self._http.base_url} does not answer ({failed}). See its log.",
                code="hub-failed",
            ) from failed

    async def end_of(self, token: str, name: str) -> datetime | None:
        """Return when a token of this user expires; None for an invalid or expired token.

        A token without expiry is of an earlier release, and counts as expired.
        """
        headers = {"Authorization": f"token {token}"}
        answer = await self._ask("GET", "user", headers=headers)
        if answer.status_code != 200 or answer.json().get("name") != name:
            return None
        about = await self._ask("GET", f"users/{name}/tokens/{answer.json()['token_id']}")
        ends = about.json().get("expires_at") if about.status_code == 200 else None
        return datetime.fromisoformat(ends) if ends else None

    async def new_token(self, name: str, note: str, lifetime: timedelta) -> str:
        """Create a token with all rights of a user.

        Raises:
            Unavailable: The Hub refuses it.
        """
        asked = {"note": note, "expires_in": int(lifetime.total_seconds())}
        answer = await self._ask("POST", f"users/{name}/tokens", json=asked)
        if answer.status_code not in (200, 201):
            raise Unavailable(
                f"The Hub issues no token for {name} (HTTP {answer.status_code}). See its log.",
                code="hub-failed",
            )
        return str(answer.json()["token"])

    async def tokens_noted(self, name: str, note: str) -> list[str]:
        """Return the IDs of a user's tokens with this note."""
        answer = await self._ask("GET", f"users/{name}/tokens")
        if answer.status_code != 200:
            raise Unavailable(
                f"The Hub does not list the tokens of {name} (HTTP {answer.status_code}). See its "
                "log.",
                code="hub-failed",
            )
        return [one["id"] for one in answer.json()["api_tokens"] if one.get("note") == note]

    async def revoke(self, name: str, id_: str) -> None:
        """Revoke a token; a missing token is no error."""
        answer = await self._ask("DELETE", f"users/{name}/tokens/{id_}")
        if answer.status_code not in (204, 404):
            raise Unavailable(
                f"The Hub does not revoke a token of {name} (HTTP {answer.status_code}). See its "
                "log.",
                code="hub-failed",
            )

    async def servers(self) -> list[tuple[str, str]]:
        """Return user and name of each running notebook server; the default one has an empty
        name.
        """
        answer = await self._ask("GET", "users", params={"state": "active"})
        if answer.status_code != 200:
            raise Unavailable(
                f"The Hub does not list its servers (HTTP {answer.status_code}). See its log.",
                code="hub-failed",
            )
        users: list[dict[str, Any]] = answer.json()
        return [(user["name"], name) for user in users for name in user.get("servers") or {}]

    async def stop_server(self, user: str, name: str) -> None:
        """Stop a notebook server, and wait until it has ended."""
        path = f"users/{user}/servers/{name}" if name else f"users/{user}/server"
        answer = await self._ask("DELETE", path)
        deadline = time.monotonic() + 60
        while answer.status_code == 202 and time.monotonic() < deadline:
            await asyncio.sleep(POLL_S)
            if (user, name) not in await self.servers():
                return


@dataclass(frozen=True, slots=True)
class AwaitedAddress:
    """Address that must answer.

    Attributes:
        trusted: TLS context with the accepted certificates; None accepts the system's.
        host: Host of the request, if it differs from that of the address.
        start: Identity of the start that must answer; empty accepts any.
    """

    url: str
    trusted: ssl.SSLContext | None = None
    host: str | None = None
    start: str = ""


class QuietTimer:
    """Timer of inactivity.

    Args:
        patience_s: Maximum inactivity, in seconds.
        progress: Returns a value that changes with each activity.
    """

    def __init__(self, patience_s: float, progress: Callable[[], object]) -> None:
        self._patience_s, self._progress = patience_s, progress
        self._seen, self._since = progress(), time.monotonic()

    def is_over(self) -> bool:
        """Return whether the inactivity exceeds ``patience_s``."""
        now = self._progress()
        if now != self._seen:
            self._seen, self._since = now, time.monotonic()
        return time.monotonic() - self._since > self._patience_s


async def wait_until(
    at: AwaitedAddress, patience_s: float, progress: Callable[[], object] = lambda: None
) -> None:
    """Wait until an address answers with 200.

    Args:
        at: The address.
        patience_s: Maximum inactivity meanwhile, in seconds.
        progress: Returns a value that changes with each activity.

    Raises:
        TimeoutError: It does not answer, and the inactivity exceeds ``patience_s``.
        Unavailable: Another start or program answers there.
    """
    quiet = QuietTimer(patience_s, progress)
    headers = {"Host": at.host} if at.host else {}
    verify = at.trusted or at.url.startswith("https")
    async with httpx.AsyncClient(
        trust_env=False, timeout=5, verify=verify, headers=headers
    ) as http:
        while not await _answers(http, at):
            if quiet.is_over():
                raise TimeoutError(at.url)
            await asyncio.sleep(POLL_S)


async def _answers(http: httpx.AsyncClient, at: AwaitedAddress) -> bool:
    try:
        answer = await http.get(at.url)
    except httpx.HTTPError:
        return False
    if answer.status_code != 200:
        return False
    if at.start not in ("", _start_of(answer)):
        raise Unavailable(
            f"Another program answers at {at.url}. End it, or start benchpool again on another "
            "port.",
            code="port-taken",
        )
    return True


def _start_of(answer: httpx.Response) -> str | None:
    """Return the identity of the start that answered, from the Hub or the scheduler's health."""
    if START_HEADER in answer.headers:
        return answer.headers[START_HEADER]
    try:
        body = answer.json()
    except ValueError:
        return None
    return body.get("start") if isinstance(body, dict) else None
