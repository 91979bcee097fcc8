"""Trusted sources of the client address: the site's own proxies and other replicas."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPHeaders
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

from benchpool_scheduler.app import serving, standby
from benchpool_scheduler.app.request_origin import HANDED_ON, RequestOrigins
from benchpool_scheduler.client.name_lookup import ProxyAddresses
from benchpool_scheduler.contract.forwarding import Peers, Proxies, RequestSource, listed
from benchpool_scheduler.errors import InvalidInput
from benchpool_support.serving import served

OURS = Proxies(listed("127.0.0.1"), listed("10.0.0.5"))
NO_PROXIES = Proxies(Peers(), Peers())
FORGED = {"X-Forwarded-For": "6.6.6.6", "X-Real-Ip": "6.6.6.6", "X-Forwarded-Proto": "https"}
PREFIX = "/services/benchpool/"


def test_untrusted_address_is_not_audited(tmp_path: Path) -> None:
    transport = httpx.HTTPTransport(local_address="127.0.0.2")
    with (
        served(tmp_path / "state", proxies=OURS) as service,
        httpx.Client(transport=transport) as untrusted,
        httpx.Client(trust_env=False) as proxy,
        service.client("root") as root,
    ):
        for client, forwarded in (
            (untrusted, FORGED),
            (proxy, {"X-Forwarded-For": "6.6.6.6, 192.0.2.1, 10.0.0.5", "X-Real-Ip": "6.6.6.6"}),
        ):
            answer = client.post(
                f"{service.url}/api/v1/jobs",
                json={"entry": {"kind": "command", "argv": ["true"]}, "project": "vision"},
                headers={"Authorization": "token susan", **forwarded},
            )
            assert answer.status_code == 201
        found = [one.address for one in root.audit(action="submit").records]
        assert found == ["192.0.2.1", "127.0.0.2"]


class OriginPage(RequestHandler):
    def get(self) -> None:
        self.finish(f"{self.request.protocol} {self.request.remote_ip}")


@contextlib.asynccontextmanager
async def listening(front: serving.Front) -> AsyncIterator[str]:
    server, sockets = HTTPServer(front), bind_sockets(0, "127.0.0.1")
    server.add_sockets(sockets)
    try:
        yield f"http://127.0.0.1:{sockets[0].getsockname()[1]}"
    finally:
        server.stop()
        await server.close_all_connections()


async def test_proxy_headers_hold_for_one_request() -> None:
    front = serving.Front(Application([(".*", OriginPage)]), RequestOrigins(lambda: OURS))
    async with listening(front) as url, httpx.AsyncClient(trust_env=False) as client:
        headers = {"X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": "wss"}
        assert (await client.get(url, headers=headers)).text == "https 192.0.2.1"
        assert (await client.get(url)).text == "http 127.0.0.1"


async def test_leader_trusts_only_signed_replica_headers() -> None:
    replicas = RequestOrigins(lambda: NO_PROXIES, secret=b"shared by all replicas of a release")
    leader = serving.Front(Application([(".*", OriginPage)]), replicas)
    async with listening(leader) as url, standby.client() as between:
        rules = standby.rules(PREFIX, lambda: ("other", url), between, "", replicas)
        reached = serving.Front(Application(rules), RequestOrigins(lambda: OURS))
        async with listening(reached) as other, httpx.AsyncClient(trust_env=False) as client:
            headers = {"X-Forwarded-For": "6.6.6.6,192.0.2.1", "X-Forwarded-Proto": "https"}
            assert (await client.get(f"{other}/a", headers=headers)).text == "https 192.0.2.1"
            forged = {**FORGED, HANDED_ON: "1"}
            assert (await client.get(f"{url}/a", headers=forged)).text == "http 127.0.0.1"


def test_signature_holds_for_one_address() -> None:
    origins = RequestOrigins(lambda: NO_PROXIES, secret=b"shared by all replicas of a release")
    signature = origins.signature(RequestSource("192.0.2.1", "http"))
    headers = HTTPHeaders({"X-Forwarded-Proto": "http", HANDED_ON: signature})
    for address, found in (("192.0.2.1", "192.0.2.1"), ("6.6.6.6", "10.0.0.9")):
        headers["X-Forwarded-For"] = address
        assert origins.of("10.0.0.9", "http", headers).address == found


async def test_host_names_are_resolved_to_addresses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proxies = ProxyAddresses(Proxies(listed("localhost"), Peers()))
    assert not proxies.now.hub.holds("127.0.0.1")
    await proxies.look_up()
    assert proxies.now.hub.holds("127.0.0.1")

    async def unknown(*_: Any, **__: Any) -> Any:
        raise OSError("no such host")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unknown)
    await proxies.look_up()
    assert not proxies.now.hub.holds("127.0.0.1"), "its word of before holds no more"


@pytest.mark.parametrize("word", ["10.0.0.256", "10.0.0.7/24", "a b", "http://proxy"])
def test_invalid_proxy_address_is_rejected(word: str) -> None:
    with pytest.raises(InvalidInput, match="not an address, network or name"):
        listed(f"10.0.0.1,{word}")
