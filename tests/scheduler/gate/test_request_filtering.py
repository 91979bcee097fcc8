"""Parts of a request that reach a program, and parts of its answer that reach a browser."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from benchpool_scheduler.gate import Openness
from benchpool_support import direct
from benchpool_support.gate_stage import SESSION, Stage, echo, echoed, raw, staged

FORGED = {
    "X-Forwarded-User": "root",
    "X_Forwarded_User": "root",
    "X-Forwarded-Prefix": "/",
    "X-Forwarded-Host": "evil.example",
    "X-Forwarded-Email": "root@example.org",
    "X-Forwarded-Access-Token": "stolen",
    "X-Forwarded-For": "10.9.9.9, 127.0.0.1",
    "Forwarded": "for=10.9.9.9;host=evil.example",
    "X-Request-Id": "mine",
    "X-Real-Ip": "10.9.9.9",
    "Remote-User": "root",
    "X-Remote-User": "root",
    "X-Auth-Request-User": "root",
    "X-Webauth-User": "root",
    "Proxy": "http://evil.example",
    "X-Script-Name": "/evil",
    "X-Scheme": "https",
    "Connection": "keep-alive, X-Secret",
    "X-Secret": "of one connection",
    "Keep-Alive": "timeout=5",
    "Te": "trailers",
    "Upgrade": "h2c",
}


async def test_forged_headers_are_replaced_by_gate_headers(
    chat: Stage, susan: httpx.AsyncClient
) -> None:
    answer = await susan.get("s/chat/", headers=FORGED)
    seen = echoed(answer.content)["headers"]
    values = [value for values in seen.values() for value in values]
    assert not [value for value in values if "root" in value or "evil" in value or "9.9" in value]
    assert seen["X-Forwarded-User"] == ["susan"]
    assert seen["X-Forwarded-Prefix"] == ["/services/benchpool/s/chat"]
    assert seen["X-Forwarded-Host"] == [f"127.0.0.1:{chat.port}"]
    assert seen["X-Forwarded-Proto"] == ["http"]
    assert seen["X-Forwarded-For"] == ["127.0.0.1"]
    assert seen["X-Request-Id"] != ["mine"]
    assert not {"X-Secret", "Keep-Alive", "Te", "Upgrade", "Authorization"} & set(seen)


async def test_hub_cookies_and_tokens_are_removed(chat: Stage, susan: httpx.AsyncClient) -> None:
    cookie = (
        f"{SESSION}=susan; _xsrf=2|abc; jupyterhub-session-id=s; mine=1; "
        "service-benchpool-oauth-state-x=y; __Host-service-benchpool=z; theirs=2"
    )
    answer = await susan.get("s/chat/", headers={"Cookie": cookie, **{"Origin": "null"}})
    assert answer.status_code == 403
    answer = await susan.get("s/chat/", headers={"Cookie": cookie})
    assert echoed(answer.content)["headers"]["Cookie"] == ["mine=1; theirs=2"]


async def test_hidden_cookies_are_removed() -> None:
    headers = {"Cookie": "_oauth2_proxy=s; mine=1", "Authorization": "token susan"}
    async with staged(hidden_cookies=["_OAuth2_Proxy"]) as stage, echo() as backend:
        stage.directory.set("chat", Openness.READY, (backend,))
        async with direct.AsyncClient() as client:
            answer = await client.get(f"{stage.url}s/chat/", headers=headers)
    assert echoed(answer.content)["headers"]["Cookie"] == ["mine=1"]


async def test_origin_and_host_are_those_of_replica(chat: Stage, susan: httpx.AsyncClient) -> None:
    answer = await susan.post("s/chat/", headers={"Origin": f"http://127.0.0.1:{chat.port}"})
    seen = echoed(answer.content)["headers"]
    assert seen["Origin"] == [f"http://{seen['Host'][0]}"]


@pytest.mark.parametrize(
    ("asked", "seen"),
    [
        ("", "/"),
        ("a/b", "/a/b"),
        ("a%2Fb%20c%C3%A4?x=%2f&y=a+b", "/a%2Fb%20c%C3%A4?x=%2f&y=a+b"),
        ("/double//slash", "//double//slash"),
        ("a;b=c,d:e@f!$'()*", "/a;b=c,d:e@f!$'()*"),
    ],
)
async def test_path_is_forwarded_without_service_prefix(chat: Stage, asked: str, seen: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", chat.port)
    writer.write(
        f"GET /services/benchpool/s/chat/{asked} HTTP/1.1\r\nHost: hub\r\n"
        "Authorization: token susan\r\nConnection: close\r\n\r\n".encode()
    )
    answer = (await reader.read()).partition(b"\r\n\r\n")[2]
    writer.close()
    assert echoed(answer)["uri"] == seen


async def test_program_may_receive_whole_path(stage: Stage, susan: httpx.AsyncClient) -> None:
    async with echo() as backend:
        stage.directory.set("board", Openness.READY, (backend,), keep_prefix=True)
        answer = await susan.get("s/board/a?b")
    assert echoed(answer.content)["uri"] == "/services/benchpool/s/board/a?b"


async def test_path_without_slash_is_redirected(chat: Stage, susan: httpx.AsyncClient) -> None:
    answer = await susan.get("s/chat?a=1")
    assert (answer.status_code, answer.headers["Location"]) == (
        307,
        "/services/benchpool/s/chat/?a=1",
    )


ANSWER = b"""HTTP/1.1 302 Found\r
Location: http://127.0.0.1:%d/login\r
Set-Cookie: sid=1; Path=/; Domain=127.0.0.1; HttpOnly\r
Set-Cookie: _xsrf=forged; Path=/hub/\r
Set-Cookie: jupyterhub-session-id=forged\r
Set-Cookie: far=1; Path=/services/benchpool/s/chat/../../../hub\r
Service-Worker-Allowed: /\r
Clear-Site-Data: "*"\r
Strict-Transport-Security: max-age=1\r
Cross-Origin-Opener-Policy: unsafe-none\r
Content-Security-Policy: default-src *\r
Access-Control-Allow-Origin: *\r
WWW-Authenticate: Basic realm="Hub"\r
X-Accel-Redirect: /protected\r
X-Program: itself\r
Connection: close, X-One\r
X-One: of one connection\r
Content-Length: 2\r
\r
ok"""


async def test_answer_headers_stay_within_service_path(
    stage: Stage, susan: httpx.AsyncClient
) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ANSWER % writer.get_extra_info("sockname")[1])
        writer.close()

    async with raw(talk) as backend:
        stage.directory.set("chat", Openness.READY, (backend,))
        answer = await susan.get("s/chat/")
    base = "/services/benchpool/s/chat/"
    assert answer.headers["Location"] == f"{base}login"
    assert answer.headers.get_list("Set-Cookie") == [
        f"sid=1; HttpOnly; Path={base}",
        f"far=1; Path={base}",
    ]
    dropped = (
        "Service-Worker-Allowed",
        "Clear-Site-Data",
        "Strict-Transport-Security",
        "Access-Control-Allow-Origin",
        "WWW-Authenticate",
        "X-Accel-Redirect",
        "X-One",
    )
    assert not [name for name in dropped if name in answer.headers]
    assert answer.headers["X-Program"] == "itself"
    assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    theirs, ours = answer.headers.get_list("Content-Security-Policy")
    assert theirs == "default-src *"
    assert f"connect-src http://127.0.0.1:{stage.port}{base} " in ours
    assert answer.content == b"ok"


SMUGGLED = [
    b"POST %s HTTP/1.1\r\nHost: h\r\nAuthorization: token susan\r\nContent-Length: 3\r\n"
    b"Content-Length: 30\r\n\r\nabcGET /hidden HTTP/1.1\r\n\r\n",
    b"POST %s HTTP/1.1\r\nHost: h\r\nAuthorization: token susan\r\nContent-Length: 3, 3\r\n\r\nabc",
    b"POST %s HTTP/1.1\r\nHost: h\r\nAuthorization: token susan\r\nContent-Length: 3\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /hidden HTTP/1.1\r\n\r\n",
    b"POST %s HTTP/1.1\r\nHost: h\r\nAuthorization: token susan\r\n"
    b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    b"POST %s HTTP/1.1\r\nHost: h\r\nAuthorization: token susan\r\nTransfer-Encoding: chunked\r\n"
    b"Transfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    b"POST %s HTTP/1.1\r\nHost: h\r\nAuthorization: token susan\r\nContent-Length: -1\r\n\r\n",
    b"POST %s HTTP/1.1\r\nHost: h\r\nAuthorization: token susan\r\nContent-Length: 0x3\r\n\r\nabc",
    b"DELETE %s HTTP/1.1\r\nHost: h\r\nAuthorization: token susan\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"GET %s HTTP/1.1\r\nHost: h\r\nAuthorization: token susan\r\nX: a\r\n b\r\n\r\n",
    b"GET %s HTTP/1.1\r\nHost: h\r\nAuthorization: token susan\r\nX : a\r\n\r\n",
    b"GET %s\xc3\xa4 HTTP/1.1\r\nHost: h\r\nAuthorization: token susan\r\n\r\n",
]


@pytest.mark.parametrize("request_", SMUGGLED)
async def test_ambiguous_request_length_is_rejected(stage: Stage, request_: bytes) -> None:
    came: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.append(await reader.read(1000))
        writer.close()

    async with raw(talk) as backend:
        stage.directory.set("chat", Openness.READY, (backend,))
        reader, writer = await asyncio.open_connection("127.0.0.1", stage.port)
        writer.write(request_ % b"/services/benchpool/s/chat/")
        answer = await reader.readuntil(b"\r\n\r\n")
        writer.close()
    assert answer[9:12] in (b"400", b"422"), answer
    assert came == []


async def test_bytes_after_answer_are_discarded(stage: Stage, susan: httpx.AsyncClient) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nminehttp")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged")
        await reader.read()
        writer.close()

    async with raw(talk) as backend:
        stage.directory.set("chat", Openness.READY, (backend,))
        answers = [(await susan.get("s/chat/")).content for _ in range(3)]
    assert answers == [b"mine"] * 3
