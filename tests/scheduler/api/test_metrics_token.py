"""The metrics token grants access to the metrics only, also without the Hub."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from tornado.web import RequestHandler

from benchpool_scheduler.contract.operation import Who
from benchpool_scheduler.contract.operations import OPERATIONS, Operations
from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.service import Caller
from benchpool_support.serving import Served, served

TOKEN = "figures-only"


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("state"), metrics_token=TOKEN) as running:
        yield running


def ask(service: Served, path: str, authorization: str) -> httpx.Response:
    with httpx.Client(trust_env=False) as client:
        return client.get(f"{service.url}/api/v1/{path}", headers={"Authorization": authorization})


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "token"])
def test_metrics_token_grants_access(watched: Served, scheme: str) -> None:
    answer = ask(watched, "metrics", f"{scheme} {TOKEN}")
    assert answer.status_code == 200
    assert "benchpool_leading 1.0" in answer.text


def test_metrics_are_available_without_hub(
    watched: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(handler: RequestHandler, *, fresh: bool = False) -> Caller | None:
        raise Unavailable("The Hub is away.", code="hub-away")

    monkeypatch.setattr(watched.identity, "authenticate", away)
    assert ask(watched, "metrics", "token root").status_code == 503
    assert ask(watched, "metrics", f"Bearer {TOKEN}").status_code == 200


@pytest.mark.parametrize(
    "authorization", ["", "Bearer", "token", "Bearer figures", f"Basic {TOKEN}", f"{TOKEN}"]
)
def test_other_tokens_are_rejected(watched: Served, authorization: str) -> None:
    assert ask(watched, "metrics", authorization).status_code == 401


def test_metrics_token_opens_no_other_path(watched: Served) -> None:
    addresses = {
        one.pattern
        for one in OPERATIONS
        if one.method == "GET" and one.who not in (Who.PUBLIC, Who.MONITOR)
    }
    plain = sorted(address for address in addresses if "(" not in address)
    assert len(plain) > 10
    answers = {address: ask(watched, address, f"token {TOKEN}").status_code for address in plain}
    assert set(answers.values()) == {401}, answers


def test_empty_token_is_rejected_without_configured_token(
    quiet_service: Served,
) -> None:
    assert ask(quiet_service, "metrics", "Bearer").status_code == 401
    assert Operations.metrics.who is Who.MONITOR
