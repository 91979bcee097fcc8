"""The gate rejects unauthenticated requests on every path, method and protocol."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from benchpool_scheduler.api import Timing
from benchpool_scheduler.gate import Openness
from benchpool_support import direct
from benchpool_support.gate_stage import SESSION, Stage, echoed, raw, staged

PATHS = ["", "metrics", "docs", "health", "v1/models", "oauth_callback", "static/x.js", "%2e%2e/x"]
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
BROWSER = {"Accept": "text/html", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Site": "none"}
SCRIPT = {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Site": "same-origin"}


async def ask(
    stage: Stage, method: str, path: str, headers: dict[str, str], **more: Any
) -> httpx.Response:
    async with direct.AsyncClient(base_url=stage.url) as client:
        return await client.request(method, path, headers=headers, **more)


@pytest.mark.parametrize("method", METHODS)
async def test_unauthenticated_request_reaches_no_path(chat: Stage, method: str) -> None:
    for path in PATHS:
        answer = await ask(chat, method, f"s/chat/{path}", {})
        assert answer.status_code == 401
        if method != "HEAD":
            assert answer.json()["error"]["code"] == "not-authenticated"
    assert chat.gate.figures("chat").last_request_at is None
    assert chat.directory.woken == []


async def test_unauthenticated_websocket_is_rejected(chat: Stage) -> None:
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        "Sec-WebSocket-Version": "13",
        "Origin": chat.url.removesuffix("/services/benchpool/"),
    }
    answer = await ask(chat, "GET", "s/chat/ws", upgrade)
    assert answer.status_code == 401


@pytest.mark.parametrize("header", ["token nobody", "Bearer nobody", "Basic c3VzYW46eA==", ""])
async def test_wrong_token_is_unauthenticated(chat: Stage, header: str) -> None:
    assert (await ask(chat, "GET", "s/chat/", {"Authorization": header})).status_code == 401


async def test_token_in_url_is_ignored(chat: Stage) -> None:
    answer = await ask(chat, "GET", "s/chat/?token=susan", {"Sec-Fetch-Mode": "websocket"})
    assert answer.status_code == 401


@pytest.mark.parametrize("kind", ["token", "Bearer"])
async def test_program_is_accepted_with_either_token_kind(chat: Stage, kind: str) -> None:
    answer = await ask(chat, "GET", "s/chat/", {"Authorization": f"{kind} susan"})
    assert answer.status_code == 200
    assert echoed(answer.content)["headers"]["X-Forwarded-User"] == ["susan"]


async def test_browser_without_login_is_redirected_and_returns(chat: Stage) -> None:
    answer = await ask(chat, "GET", "s/chat/a%2Fb?c=1", BROWSER)
    assert answer.status_code == 302
    assert answer.headers["Location"] == (
        "/hub/login?next=%2Fservices%2Fbenchpool%2Fs%2Fchat%2Fa%252Fb%3Fc%3D1"
    )


async def test_script_without_login_gets_error_without_redirect(chat: Stage) -> None:
    answer = await ask(chat, "GET", "s/chat/", {**SCRIPT, "Accept": "text/html"})
    assert answer.status_code == 401


async def test_unauthorised_user_gets_not_found_and_wakes_nothing(chat: Stage) -> None:
    for name in ("chat", "nothing"):
        answer = await ask(chat, "GET", f"s/{name}/", {"Authorization": "token joe"})
        assert answer.status_code == 404
        assert answer.json()["error"]["message"].startswith(f"There is no service {name}")
    assert chat.directory.woken == []


async def test_unauthorised_browser_gets_error_page(chat: Stage) -> None:
    answer = await ask(chat, "GET", "s/chat/", {**BROWSER, "Cookie": f"{SESSION}=joe"})
    assert answer.status_code == 404
    assert "There is no service chat" in answer.text
    assert answer.headers["Content-Type"].startswith("text/html")


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("GET", BROWSER),
        ("GET", {**BROWSER, "Sec-Fetch-Site": "cross-site"}),  # a link from another site
        ("GET", SCRIPT),
        ("POST", SCRIPT),
        ("POST", {"Origin": "http://{host}"}),
        ("GET", {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Site": "same-origin"}),
    ],
)
async def test_session_from_hub_origin_is_accepted(
    chat: Stage, method: str, headers: dict[str, str]
) -> None:
    host = f"127.0.0.1:{chat.port}"
    sent = {name: value.format(host=host) for name, value in headers.items()}
    answer = await ask(chat, method, "s/chat/", {**sent, "Cookie": f"{SESSION}=susan"})
    assert answer.status_code == 200


OTHER_SITES = [
    ("POST", {"Origin": "https://evil.example"}),
    ("POST", {"Origin": "null"}),
    ("POST", {"Origin": "http://{host}.evil.example"}),
    ("POST", {"Origin": "http://evil.example/http://{host}"}),
    ("POST", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}),
    ("POST", {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"}),
    ("GET", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}),
    ("GET", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}),
    (
        "GET",
        {
            "Sec-Fetch-Site": "cross-site",
            "Sec-Fetch-Mode": "navigate",
            "Sec-Fetch-Dest": "iframe",
        },
    ),
    ("GET", {"Origin": "https://evil.example"}),
    ("POST", {}),  # a session without origin headers
    ("DELETE", {}),
]


@pytest.mark.parametrize(("method", "headers"), OTHER_SITES)
async def test_session_from_another_site_is_rejected(
    chat: Stage, method: str, headers: dict[str, str]
) -> None:
    host = f"127.0.0.1:{chat.port}"
    sent = {name: value.format(host=host) for name, value in headers.items()}
    answer = await ask(chat, method, "s/chat/", {**sent, "Cookie": f"{SESSION}=susan"})
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] in ("other-site", "xsrf")
    assert chat.gate.figures("chat").last_request_at is None


async def test_losing_permission_ends_open_answer() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
        await reader.read()

    async with staged(timing=Timing(recheck_s=0.05)) as stage, raw(drip) as backend:
        stage.directory.set("chat", Openness.READY, (backend,))
        async with (
            direct.AsyncClient(base_url=stage.url) as client,
            client.stream("GET", "s/chat/", headers={"Authorization": "token susan"}) as answer,
        ):
            pieces = answer.aiter_raw()
            assert await anext(pieces) == b"data: 1\n\n"
            stage.identity.ended.add("susan")
            with pytest.raises(httpx.RemoteProtocolError):
                await anext(pieces)
        await stage.gate.drained(backend.id)
