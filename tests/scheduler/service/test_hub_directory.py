"""The directory reads users, groups and servers from all pages of the Hub's REST API over HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port
from tornado.web import Application, RequestHandler

from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.hub import HeldBench, HubDirectory, HubServer, HubUser

USERS: list[dict[str, Any]] = [
    {"name": "ada", "admin": True, "groups": [], "servers": {}, "kind": "user"},
    {
        "name": "susan",
        "admin": False,
        "groups": ["lab", "staff"],
        "servers": {
            "": {
                "ready": True,
                "pending": None,
                "stopped": False,
                "started": "2026-01-31T12:00:00.5Z",
                "last_activity": "2026-01-31T12:00:01.5Z",
                "state": {"pid": 7, "benchpool": {"spawn": "s", "lease": "k", "gpus": ["GPU-1"]}},
            },
            "paper": {
                "ready": False,
                "pending": "spawn",
                "stopped": False,
                "state": {"benchpool": {"spawn": "s", "lease": None, "gpus": []}},
            },
            "old": {"ready": False, "pending": None, "stopped": True},
        },
    },
    {"name": "joe", "groups": ["wild", "typed"], "last_activity": "2026-01-31T12:00:00.5Z"},
]
GROUPS: list[dict[str, Any]] = [
    {"name": "lab", "properties": {"benchpool": {"build_quota": 2}}, "users": ["susan"]},
    {"name": "staff", "properties": {}},
    {"name": "wild", "properties": {"benchpool": {"build_quota": "many"}}},
    {"name": "typed", "properties": {"benchpool": '{"build_quota": 3}'}},
]


class Page(RequestHandler):
    """Handler that returns one entry a page, in the Hub's pagination format."""

    def initialize(self, items: list[dict[str, Any]], token: str) -> None:
        self.items = items
        self.token = token

    def get(self) -> None:
        if self.request.headers.get("Authorization") != f"token {self.token}":
            self.send_error(403)
            return
        assert self.request.headers["Accept"] == "application/jupyterhub-pagination+json"
        offset = int(self.get_argument("offset"))
        more = {"offset": offset + 1, "limit": 1} if offset + 1 < len(self.items) else None
        body = {"items": self.items[offset : offset + 1], "_pagination": {"next": more}}
        self.write(json.dumps(body))


@asynccontextmanager
async def a_hub() -> AsyncIterator[str]:
    routes = [
        (r"/hub/api/users", Page, {"items": USERS, "token": "secret"}),
        (r"/hub/api/groups", Page, {"items": GROUPS, "token": "secret"}),
    ]
    socket, port = bind_unused_port()
    server = HTTPServer(Application(routes, log_function=lambda handler: None))
    server.add_socket(socket)
    yield f"http://127.0.0.1:{port}/hub/api"
    server.stop()
    await server.close_all_connections()


async def test_users_groups_and_active_servers_are_read_from_all_pages() -> None:
    async with a_hub() as url:
        directory = HubDirectory(url, "secret")
        assert (directory.users(), directory.servers()) == ((), None)
        await directory.refresh()
        assert directory.users() == (
            HubUser("ada", admin=True),
            HubUser("susan", groups={"lab": 2, "staff": None}),
            HubUser("joe", groups={"wild": None, "typed": 3}),
        )
        assert [user.last_seen for user in directory.users()] == [None, None, 1769860800.5]
        assert directory.servers() == (
            HubServer("susan", "", held=HeldBench("k", "s", ("GPU-1",)), started=1769860800.5),
            HubServer("susan", "paper", ready=False),
        )
        seen = [server.last_active for server in directory.servers() or ()]
        assert seen == [1769860801.5, None]
        (problem,) = directory.problems()
        assert "property benchpool of the group wild cannot be read" in problem
        assert '{"build_quota":"many"}' in problem
        await directory.close()


async def test_hub_outage_keeps_known_users() -> None:
    async with a_hub() as url:
        directory = HubDirectory(url, "secret")
        await directory.refresh()
    with pytest.raises(Unavailable, match="The Hub does not answer"):
        await directory.refresh()
    assert len(directory.users()) == 3
    await directory.close()


async def test_missing_hub_scopes_are_reported() -> None:
    async with a_hub() as url:
        directory = HubDirectory(url, "other")
        with pytest.raises(
            Unavailable, match=r"HTTP 403\)\. Give the service benchpool the scopes"
        ):
            await directory.refresh()
        await directory.close()


async def test_server_stop_outlasts_slow_answer_of_hub() -> None:
    """JupyterHub answers 202 after ten seconds (``slow_stop_timeout``) if a stop takes longer."""
    timeouts: list[float] = []

    def stops(request: httpx.Request) -> httpx.Response:
        timeouts.append(request.extensions["timeout"]["read"])
        return httpx.Response(202)

    transport = httpx.MockTransport(stops)
    directory = HubDirectory("http://hub/api", "secret", transport=transport)
    await directory.stop_server("susan", "")
    await directory.close()
    assert timeouts[0] > 10
