"""A service that is not ready: its page, its answer to programs, and held requests."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from benchpool_scheduler.gate import Openness
from benchpool_support.gate_stage import SESSION, Stage, echo, echoed
from benchpool_support.waiting import until_async

SENTENCE = "It waits for 1 GPU: third in line, likely in 4 minutes."
BROWSER = {"Accept": "text/html,*/*", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Site": "none"}


@pytest.fixture
def starting(stage: Stage) -> Stage:
    stage.directory.set("chat", Openness.STARTING, (), SENTENCE, retry_after_s=240)
    return stage


@pytest.mark.parametrize("state", [one for one in Openness if one is not Openness.READY])
async def test_program_gets_state_sentence_and_retry_after(
    stage: Stage, susan: httpx.AsyncClient, state: Openness
) -> None:
    stage.directory.set("chat", state, (), SENTENCE, retry_after_s=240)
    answer = await susan.get("s/chat/v1/models")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "240")
    error = answer.json()["error"]
    assert error["code"] == f"service-{state.value}"
    assert error["message"] == f"chat: {SENTENCE}"
    assert error["numbers"] == {"retry_after_s": 240}


async def test_first_request_wakes_service(starting: Stage, susan: httpx.AsyncClient) -> None:
    await susan.get("s/chat/")
    assert starting.directory.woken == ["chat"]


async def test_browser_gets_page_with_state_and_sentence(
    starting: Stage, susan: httpx.AsyncClient
) -> None:
    answer = await susan.get("s/chat/lab?x=1", headers=BROWSER)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "240")
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "chat <span" in answer.text
    assert "is starting" in answer.text
    assert SENTENCE in answer.text
    assert 'http-equiv="refresh"' not in answer.text
    assert "require-trusted-types-for" in answer.headers["Content-Security-Policy"]


async def test_sentence_is_escaped_on_page(stage: Stage, susan: httpx.AsyncClient) -> None:
    stage.directory.set("chat", Openness.FAILED, (), "<script>alert(1)</script>")
    answer = await susan.get("s/chat/", headers=BROWSER)
    assert "<script>alert" not in answer.text
    assert "&lt;script&gt;alert(1)" in answer.text


async def test_ready_without_replica_is_shown_as_starting(
    stage: Stage, susan: httpx.AsyncClient
) -> None:
    stage.directory.set("chat", Openness.READY, ())
    error = (await susan.get("s/chat/")).json()["error"]
    assert error["code"] == "service-starting"
    assert "None of its replicas is ready" in error["message"]


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_request_preferring_wait_is_answered_when_ready(
    starting: Stage, susan: httpx.AsyncClient, method: str
) -> None:
    body = b"hello" if method == "POST" else b""
    asked = asyncio.ensure_future(
        susan.request(method, "s/chat/", headers={"Prefer": "wait=60"}, content=body)
    )
    await until_async(lambda: starting.directory.woken)
    starting.directory.set("chat", Openness.STARTING, (), "It loads.")  # not yet
    assert starting.gate.figures("chat").in_flight == 1
    async with echo() as backend:
        starting.directory.set("chat", Openness.READY, (backend,))
        request = echoed((await asyncio.wait_for(asked, 120)).content)
    assert (request["method"], request["body"]) == (method, body.decode())
    assert starting.gate.figures("chat").in_flight == 0


async def test_request_waits_at_most_its_preferred_time(
    starting: Stage, susan: httpx.AsyncClient
) -> None:
    answer = await susan.get("s/chat/", headers={"Prefer": "wait=1"})
    assert answer.status_code == 503


async def test_disconnected_client_is_no_longer_held(starting: Stage) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", starting.port)
    writer.write(
        b"GET /services/benchpool/s/chat/ HTTP/1.1\r\nHost: h\r\nPrefer: wait=300\r\n"
        b"Authorization: token susan\r\n\r\n"
    )
    await until_async(lambda: starting.directory.waiting("chat"))
    writer.close()
    await until_async(lambda: not starting.directory.waiting("chat"))
    await until_async(lambda: starting.gate.figures("chat").in_flight == 0)


async def test_held_client_losing_permission_gets_not_found(
    starting: Stage, susan: httpx.AsyncClient
) -> None:
    asked = asyncio.ensure_future(susan.get("s/chat/", headers={"Prefer": "wait=60"}))
    await until_async(lambda: starting.directory.woken)
    starting.directory.denied.add("susan")
    starting.directory.notify("chat")
    assert (await asyncio.wait_for(asked, 120)).status_code == 404


async def test_page_is_notified_of_state_change(starting: Stage, susan: httpx.AsyncClient) -> None:
    first = (await susan.get("service-state/chat")).json()
    assert (first["ready"], first["sentence"]) == (False, SENTENCE)
    asked = asyncio.ensure_future(susan.get("service-state/chat", params={"seen": first["seen"]}))
    await until_async(lambda: starting.directory.waiting("chat"))
    starting.directory.notify("chat")  # no change of the page
    await until_async(lambda: starting.directory.waiting("chat"))
    starting.directory.set("chat", Openness.STARTING, (), "It is next in line.")
    now = (await asyncio.wait_for(asked, 120)).json()
    assert now["sentence"] == "It is next in line."
    async with echo() as backend:
        starting.directory.set("chat", Openness.READY, (backend,))
        assert (await susan.get("service-state/chat", params={"seen": now["seen"]})).json()["ready"]


async def test_waiting_page_wakes_service_that_fell_asleep(
    starting: Stage, susan: httpx.AsyncClient
) -> None:
    seen = (await susan.get("service-state/chat")).json()["seen"]
    assert starting.directory.woken == [], "a look at the state wakes nothing"
    assert starting.gate.figures("chat").unserved_at is None
    starting.directory.set("chat", Openness.ASLEEP, (), "It sleeps.")
    now = (await susan.get("service-state/chat", params={"seen": seen})).json()
    assert (now["state"], starting.directory.woken) == ("asleep", ["chat"])
    assert starting.gate.figures("chat").unserved_at is not None
    starting.directory.denied.add("susan")
    answer = await susan.get("service-state/chat", params={"seen": seen})
    assert (answer.status_code, starting.directory.woken) == (404, ["chat"])


@pytest.mark.parametrize("headers", [{}, {"Cookie": f"{SESSION}=joe"}])
async def test_unauthorised_client_gets_no_state(starting: Stage, headers: dict[str, str]) -> None:
    async with httpx.AsyncClient(base_url=starting.url, trust_env=False) as client:
        answer = await client.get("service-state/chat", headers=headers)
    assert answer.status_code == (404 if headers else 401)
    assert "message" in answer.json()["error"]
