"""Forwarding of requests from the notebook server to the pool, and access to it."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from benchpool.server import routes
from benchpool_scheduler.contract import State
from benchpool_support import direct
from benchpool_support.dialog import body, made, new_key
from benchpool_support.notebook_server import TOKEN, NotebookServer
from benchpool_support.serving import Served
from benchpool_support.waiting import until

pytestmark = pytest.mark.slow

# ------------------------------------------------------------------ forwarding


def test_jobs_logs_and_actions_are_forwarded(server: NotebookServer, pool: Served) -> None:
    # Written in one piece: unbuffered print() writes text and line end separately.
    slow = "import os, time\nos.write(1, b'begun\\n')\ntime.sleep(600)"
    (server.root / "slow.py").write_text(slow)
    job = made(server.page.post("benchpool/send", json=body("script", "slow.py", key=new_key())))[
        "id"
    ]
    with server.page.stream(
        "GET", f"benchpool/api/v1/jobs/{job}/logs/stream", headers={"Accept": "text/event-stream"}
    ) as stream:
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        line = next(line for line in stream.iter_lines() if line.startswith("data: "))
        assert json.loads(line.removeprefix("data: "))["text"] == "begun\n"
    log = server.page.get(f"benchpool/api/v1/jobs/{job}/logs", params={"offset": 2})
    assert log.text == "gun\n"
    assert log.headers["Content-Type"].startswith("text/plain")
    assert log.headers["X-Content-Type-Options"] == "nosniff"
    assert log.headers["Benchpool-Log-Next"] == "6"
    assert job in {each["id"] for each in server.page.get("benchpool/api/v1/jobs").json()}
    acted = server.page.post(f"benchpool/api/v1/jobs/{job}/cancel", json={"reason": "test"})
    assert acted.is_success
    with pool.client("susan") as client:
        assert client.wait(job).state is State.CANCELLED
    refused = server.page.post(f"benchpool/api/v1/jobs/{job}/pause", json={})
    assert refused.status_code == 409
    assert refused.json()["error"]["message"]


def test_events_arrive_while_stream_is_open(server: NotebookServer, pool: Served) -> None:
    (server.root / "quick.py").write_text("print(1)")
    headers = {"Accept": "text/event-stream"}
    with server.page.stream("GET", "benchpool/api/v1/events", headers=headers) as stream:
        lines = stream.iter_lines()
        asked = body("script", "quick.py", key=new_key())
        job = made(httpx_post(server, asked))["id"]
        events = (json.loads(one[6:]) for one in lines if one.startswith("data: ") and job in one)
        assert any(one["state"] == "succeeded" for one in events)


def httpx_post(server: NotebookServer, asked: dict[str, Any]) -> httpx.Response:
    """Send a request beside an open stream, on its own connection."""
    with direct.Client(base_url=server.url, timeout=30) as page:
        return page.post("benchpool/send", json=asked, headers={"Authorization": f"token {TOKEN}"})


def test_closed_page_closes_its_pool_stream(server: NotebookServer, pool: Served) -> None:
    def open_streams() -> int:
        return pool.api.open_streams

    def all_closed() -> None:
        until(open_streams, "all streams are closed", holds=lambda number: number == 0)

    all_closed()  # streams of earlier tests
    with direct.Client(base_url=server.url, timeout=30) as page:
        headers = {"Accept": "text/event-stream", "Authorization": f"token {TOKEN}"}
        for _ in range(3):
            with page.stream("GET", "benchpool/api/v1/events", headers=headers) as stream:
                assert stream.status_code == 200
                assert open_streams() >= 1
    all_closed()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "leases"),
        ("POST", "leases"),
        ("POST", "config/apply"),
        ("GET", "metrics"),
        ("POST", "objects/missing"),
        ("GET", "jobs/../leases"),
        ("GET", "jobs/%2e%2e/leases"),
        ("GET", "jobs//x"),
        ("POST", "quota"),
    ],
)
def test_unlisted_operation_returns_404(server: NotebookServer, method: str, path: str) -> None:
    answer = server.page.request(
        method, f"benchpool/api/v1/{path}", json={} if method == "POST" else None
    )
    assert answer.status_code == 404


# ------------------------------------------------------------------ access


def test_every_route_requires_login(server: NotebookServer) -> None:
    places = {"api/v1/(.+)": "api/v1/jobs", "prepare": "prepare", "send": "send"}
    asked = 0
    with server.anonymous() as anonymous:
        for pattern, handler in routes.routes("/"):
            name = pattern.removeprefix("/benchpool/")
            for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
                if method.lower() not in vars(handler):
                    continue
                path = f"benchpool/{places.get(name, name)}"
                answer = anonymous.request(
                    method, path, content=b"{}" if method == "POST" else None
                )
                assert answer.status_code == 403, (method, path)
                asked += 1
    assert asked == 10


def test_cross_origin_request_without_token_is_rejected(server: NotebookServer) -> None:
    """A browser sends its cookie. Without the token in the header the request must be rejected."""
    with direct.Client(base_url=server.url, follow_redirects=True, timeout=30) as browser:
        browser.get("login", params={"token": TOKEN, "next": "/api/status"})
        assert browser.get("benchpool/api/v1/jobs").status_code == 200
        answer = browser.post(
            "benchpool/send",
            json={**body(), "key": new_key()},
            headers={"Origin": "http://evil.example"},
        )
        assert answer.status_code in (403, 404)
        unmarked = browser.post("benchpool/send", json={**body(), "key": new_key()})
        assert unmarked.status_code == 403


def test_server_token_appears_in_no_answer(server: NotebookServer) -> None:
    secret = "servers-own-token-0123456789"
    (server.root / "plain.py").write_text("print(1)")
    asked = body("script", "plain.py", key=new_key())
    answers = [
        server.page.post("benchpool/prepare", json=asked),
        server.page.post("benchpool/send", json=asked),
        server.page.get("benchpool/api/v1/status"),
        server.page.get("benchpool/api/v1/quota"),
        server.page.get("benchpool/api/v1/jobs?all=true"),
    ]
    for answer in answers:
        assert answer.is_success
        assert secret not in answer.text + str(answer.headers)
