"""What ``benchpool up`` asks of its Hub: whether it answers, and for an administrator's token."""

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

ANSWER_TIMEOUT_S = 10.0
POLL_S = 0.1


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
                f"The Hub at {self._http.base_url} does not answer ({failed}): see its log.",
                code="hub-failed",
            ) from failed

    async def end_of(self, token: str, name: str) -> datetime | None:
        """Return when a token of this user ends; None where it is not, or no longer, good.

        One that never ends is of an earlier release: it counts as ended.
        """
        headers = {"Authorization": f"token {token}"}
        answer = await self._ask("GET", "user", headers=headers)
        if answer.status_code != 200 or answer.json().get("name") != name:
            return None
        about = await self._ask("GET", f"users/{name}/tokens/{answer.json()['token_id']}")
        ends = about.json().get("expires_at") if about.status_code == 200 else None
        return datetime.fromisoformat(ends) if ends else None

    async def new_token(self, name: str, note: str, lifetime: timedelta) -> str:
        """Make a token with all rights of a user.

        Raises:
            Unavailable: The Hub does not give one.
        """
        asked = {"note": note, "expires_in": int(lifetime.total_seconds())}
        answer = await self._ask("POST", f"users/{name}/tokens", json=asked)
        if answer.status_code not in (200, 201):
            raise Unavailable(
                f"The Hub gives no token for {name} (HTTP {answer.status_code}): see its log.",
                code="hub-failed",
            )
        return str(answer.json()["token"])

    async def tokens_noted(self, name: str, note: str) -> list[str]:
        """Return the ids of a user's tokens with this note."""
        answer = await self._ask("GET", f"users/{name}/tokens")
        if answer.status_code != 200:
            raise Unavailable(
                f"The Hub does not list the tokens of {name} (HTTP {answer.status_code}): see its "
                "log.",
                code="hub-failed",
            )
        return [one["id"] for one in answer.json()["api_tokens"] if one.get("note") == note]

    async def revoke(self, name: str, id_: str) -> None:
        """Let a token be good no longer; one that is gone already is fine."""
        answer = await self._ask("DELETE", f"users/{name}/tokens/{id_}")
        if answer.status_code not in (204, 404):
            raise Unavailable(
                f"The Hub does not take a token of {name} back (HTTP {answer.status_code}): see "
                "its log.",
                code="hub-failed",
            )

    async def servers(self) -> list[tuple[str, str]]:
        """Return user and name of each notebook server that runs; the default one has no name."""
        answer = await self._ask("GET", "users", params={"state": "active"})
        if answer.status_code != 200:
            raise Unavailable(
                f"The Hub does not list its servers (HTTP {answer.status_code}): see its log.",
                code="hub-failed",
            )
        users: list[dict[str, Any]] = answer.json()
        return [(user["name"], name) for user in users for name in user.get("servers") or {}]

    async def stop_server(self, user: str, name: str) -> None:
        """Stop a notebook server, and wait until it is gone."""
        path = f"users/{user}/servers/{name}" if name else f"users/{user}/server"
        answer = await self._ask("DELETE", path)
        deadline = time.monotonic() + 60
        while answer.status_code == 202 and time.monotonic() < deadline:
            await asyncio.sleep(POLL_S)
            if (user, name) not in await self.servers():
                return


@dataclass(frozen=True, slots=True)
class AwaitedAddress:
    """An address that must answer.

    Attributes:
        trusted: Which certificates are taken; None takes those that the system trusts.
        host: The name that the request is for, where it is another one than that of the address.
    """

    url: str
    trusted: ssl.SSLContext | None = None
    host: str | None = None


async def wait_until(
    at: AwaitedAddress, patience_s: float, progress: Callable[[], object] = lambda: None
) -> None:
    """Wait until an address answers with 200.

    Args:
        patience_s: How long nothing may happen meanwhile.
        progress: Returns something else whenever something has happened.

    Raises:
        TimeoutError: It does not, and for ``patience_s`` nothing has happened.
    """
    seen, since = progress(), time.monotonic()
    headers = {"Host": at.host} if at.host else {}
    verify = at.trusted or at.url.startswith("https")
    async with httpx.AsyncClient(
        trust_env=False, timeout=5, verify=verify, headers=headers
    ) as http:
        while True:
            try:
                if (await http.get(at.url)).status_code == 200:
                    return
            except httpx.HTTPError:
                pass
            now = progress()
            if now != seen:
                seen, since = now, time.monotonic()
            elif time.monotonic() - since > patience_s:
                raise TimeoutError(at.url)
            await asyncio.sleep(POLL_S)
