"""Users and running servers, read from JupyterHub."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeVar, runtime_checkable
from urllib.parse import quote

import httpx
from msgspec import DecodeError, Struct, ValidationError
from msgspec import convert as msgspec_convert
from msgspec import json as msgspec_json

from benchpool_scheduler.contract.group_property import group_quota
from benchpool_scheduler.errors import Unavailable

SCOPES = ("list:users", "read:users", "read:servers", "list:groups", "read:groups")
"""Scopes that the service's token needs."""

STOP_SCOPE = "delete:servers"
"""Additional scope that is needed to stop idle benches."""

PAGE = 200
TIMEOUT_S = 10.0
STOP_TIMEOUT_S = 30.0
"""Timeout for stopping a server, in seconds. JupyterHub answers after ``slow_stop_timeout``, 10."""


@dataclass(frozen=True, slots=True)
class HubUser:
    """A user of the Hub.

    ``groups`` maps each group to its group property ``benchpool.build_quota``, None without one.
    ``last_seen`` is the time of the user's last activity, in seconds since the epoch. It changes
    all the time, so users that differ in nothing else are equal. ``created`` is when the Hub
    created the user; a rename does not change it.
    """

    name: str
    admin: bool = False
    groups: Mapping[str, int | None] = field(default_factory=dict)
    may_start_servers: bool = True
    last_seen: float | None = field(default=None, compare=False)
    created: float | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class HeldBench:
    """Lease of a server, as the spawner stores it in the Hub; ``spawn`` identifies one start."""

    lease: str
    spawn: str
    gpus: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HubServer:
    """A notebook server that runs or is starting; the default server's name is empty.

    Attributes:
        held: Its bench, if the Hub shows it. ``started``: in seconds since the epoch.
            ``last_active``: time of its last activity, which changes all the time; servers that
            differ in nothing else are equal.
        profile: The profile of its start, if the Hub offers any.
    """

    user: str
    name: str
    ready: bool = True
    held: HeldBench | None = None
    started: float | None = None
    last_active: float | None = field(default=None, compare=False)
    profile: str = ""


class Directory(Protocol):
    """The Hub's users and servers; reads are answered from memory."""

    async def refresh(self) -> None:
        """Refresh from the Hub. Errors: Unavailable; the last data then stays."""

    def users(self) -> tuple[HubUser, ...]:
        """Return all users as of the last refresh."""

    def servers(self) -> tuple[HubServer, ...] | None:
        """Return all active servers as of the last refresh, or None while they are unknown."""

    def problems(self) -> tuple[str, ...]:
        """Return a sentence for each part of the Hub that could not be read."""


@runtime_checkable
class StopsServers(Protocol):
    """Interface of a Hub that stops servers."""

    async def stop_server(self, user: str, name: str) -> None:
        """Stop a server; a missing server is no error. Errors: Unavailable."""


@dataclass
class StaticDirectory:
    """Directory with fixed contents, for use without a Hub and in tests."""

    known_users: tuple[HubUser, ...] = ()
    known_servers: tuple[HubServer, ...] | None = None

    async def refresh(self) -> None:
        """Do nothing."""

    def users(self) -> tuple[HubUser, ...]:
        """Return the users it was given."""
        return self.known_users

    def servers(self) -> tuple[HubServer, ...] | None:
        """Return the servers it was given."""
        return self.known_servers

    def problems(self) -> tuple[str, ...]:
        """Return an empty tuple."""
        return ()


# --------------------------------------------------------------------------- the Hub's REST API


class _Server(Struct):
    ready: bool = False
    pending: str | None = None
    stopped: bool = False
    started: datetime | None = None
    last_activity: datetime | None = None
    state: dict[str, object] | None = None
    user_options: dict[str, object] | None = None


class _User(Struct):
    name: str
    admin: bool = False
    groups: list[str] = []
    created: datetime | None = None
    last_activity: datetime | None = None
    servers: dict[str, _Server] = {}


class _Group(Struct):
    name: str
    properties: dict[str, object] = {}


class _Next(Struct):
    offset: int


class _Pagination(Struct):
    next: _Next | None = None


class _Users(Struct):
    items: list[_User]
    _pagination: _Pagination


class _Groups(Struct):
    items: list[_Group]
    _pagination: _Pagination


Page = TypeVar("Page", _Users, _Groups)


class HubDirectory:
    """The users and servers of a JupyterHub, by its REST API.

    Args:
        api_url: The Hub's API, e.g. ``http://127.0.0.1:8081/hub/api``.
        token: The service's token; it needs ``SCOPES``.
    """

    def __init__(
        self, api_url: str, token: str, *, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._http = httpx.AsyncClient(
            base_url=api_url.rstrip("/") + "/",
            headers={
                "Authorization": f"token {token}",
                "Accept": "application/jupyterhub-pagination+json",
            },
            timeout=TIMEOUT_S,
            transport=transport,
            # The Hub is local: bypass proxies of the environment.
            trust_env=False,
        )
        self._users: tuple[HubUser, ...] = ()
        self._servers: tuple[HubServer, ...] | None = None
        self._problems: tuple[str, ...] = ()

    async def refresh(self) -> None:
        """Refresh from the Hub. Errors: Unavailable; the last data then stays."""
        read = {
            group.name: group_quota(group.name, group.properties)
            for page in await self._pages("groups", _Groups)
            for group in page.items
        }
        quotas = {name: one.gpus for name, one in read.items()}
        users = [user for page in await self._pages("users", _Users) for user in page.items]
        self._users = tuple(
            HubUser(
                user.name,
                user.admin,
                {name: quotas.get(name) for name in user.groups},
                last_seen=None if user.last_activity is None else user.last_activity.timestamp(),
                created=None if user.created is None else user.created.timestamp(),
            )
            for user in users
        )
        self._servers = tuple(_servers(users))
        self._problems = tuple(one.problem for one in read.values() if one.problem is not None)

    def users(self) -> tuple[HubUser, ...]:
        """Return all users as of the last refresh."""
        return self._users

    def servers(self) -> tuple[HubServer, ...] | None:
        """Return all active servers as of the last refresh, or None while they are unknown."""
        return self._servers

    def problems(self) -> tuple[str, ...]:
        """Return the unreadable parts of the groups, as of the last refresh."""
        return self._problems

    async def stop_server(self, user: str, name: str) -> None:
        """Stop a server; a missing or stopping server is no error.

        Errors: Unavailable.
        """
        of = f"users/{quote(user, safe='')}"
        path = f"{of}/servers/{quote(name, safe='')}" if name else f"{of}/server"
        try:
            answer = await self._http.delete(path, timeout=STOP_TIMEOUT_S)
        except httpx.HTTPError as error:
            raise Unavailable(
                f"the Hub does not answer ({type(error).__name__}). The request is repeated.",
                code="hub-unreachable",
            ) from None
        if answer.status_code in (202, 204, 400, 404):
            return  # 400: it does not run, or is being stopped
        raise Unavailable(
            f"the Hub refuses to stop it (HTTP {answer.status_code}). Give the service benchpool "
            f"the scope {STOP_SCOPE}.",
            code="hub-refuses",
            numbers={"status": answer.status_code},
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _pages(self, path: str, kind: type[Page]) -> list[Page]:
        pages: list[Page] = []
        offset: int | None = 0
        while offset is not None:
            page = await self._page(path, kind, offset)
            pages.append(page)
            following = page._pagination.next
            offset = None if following is None or following.offset <= offset else following.offset
        return pages

    async def _page(self, path: str, kind: type[Page], offset: int) -> Page:
        try:
            answer = await self._http.get(path, params={"offset": offset, "limit": PAGE})
            answer.raise_for_status()
            return msgspec_json.decode(answer.content, type=kind)
        except httpx.HTTPStatusError as error:
            status = error.response.status_code
            raise Unavailable(
                f"The Hub refuses to list its {path} (HTTP {status}). Give the service benchpool "
                f"the scopes {', '.join(SCOPES)}.",
                code="hub-refuses",
                numbers={"status": status},
            ) from None
        except (httpx.HTTPError, DecodeError) as error:
            raise Unavailable(
                f"The Hub does not answer ({type(error).__name__}). Its last known users and "
                "servers are used. Check that JupyterHub runs.",
                code="hub-unreachable",
            ) from None


def _servers(users: Iterable[_User]) -> Iterable[HubServer]:
    for user in users:
        for name, server in user.servers.items():
            if server.ready or server.pending or not server.stopped:
                started = None if server.started is None else server.started.timestamp()
                last = None if server.last_activity is None else server.last_activity.timestamp()
                held, profile = _held(server), (server.user_options or {}).get("profile")
                yield HubServer(
                    *(user.name, name, server.ready, held, started, last),
                    profile=profile if isinstance(profile, str) else "",
                )


def _held(server: _Server) -> HeldBench | None:
    """Return the bench in the spawner's state, which the scope ``admin:server_state`` shows."""
    try:
        return msgspec_convert((server.state or {}).get("benchpool"), HeldBench)
    except ValidationError:
        return None
