"""Identification of nodes by pod tokens: right account and audience only, with few reviews."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.kube import KubeForbidden, PodTokens, kinds
from benchpool_scheduler.kube.failures import KubeStatus
from benchpool_scheduler.kube.pod_tokens import (
    KNOWN_S,
    MOST_ASKING,
    NODE,
    REFUSED_S,
    ReviewedUser,
    ReviewStatus,
    TokenReview,
)
from benchpool_support.clocks import FakeClock

ACCOUNT, AUDIENCE = "system:serviceaccount:benchpool:node-agent", "benchpool-scheduler"
GOOD = ReviewStatus(True, ReviewedUser(ACCOUNT, {NODE: ["n0"]}), [AUDIENCE])


class ScriptedConnection:
    """Connection that answers token reviews; ``gate`` delays the answers."""

    def __init__(self, *answers: ReviewStatus | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []
        self.gate: asyncio.Event | None = None

    async def create(self, kind: Any, body: Any, **_: Any) -> TokenReview:
        assert kind is kinds.TOKEN_REVIEWS
        self.asked.append(body["spec"])
        if self.gate is not None:
            await self.gate.wait()
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return TokenReview(answer)


def tokens(connection: ScriptedConnection, clock: FakeClock | None = None) -> PodTokens:
    at: Any = connection
    return PodTokens(at, ACCOUNT, AUDIENCE, (clock or FakeClock()).now)


async def test_token_identifies_node_and_is_cached() -> None:
    connection, clock = ScriptedConnection(GOOD), FakeClock()
    at = tokens(connection, clock)
    assert [await at.node("t"), await at.node("t")] == ["n0", "n0"]
    assert connection.asked == [{"token": "t", "audiences": [AUDIENCE]}]
    clock.pass_s(KNOWN_S)
    assert await at.node("t") == "n0"
    assert len(connection.asked) == 2


@pytest.mark.parametrize(
    "status",
    [
        ReviewStatus(),
        ReviewStatus(True, ReviewedUser("system:serviceaccount:lab:x", {NODE: ["n0"]}), [AUDIENCE]),
        ReviewStatus(True, ReviewedUser(ACCOUNT, {NODE: ["n0"]}), ["https://kubernetes.default"]),
        ReviewStatus(True, ReviewedUser(ACCOUNT, {}), [AUDIENCE]),
        ReviewStatus(False, ReviewedUser(ACCOUNT, {NODE: ["n0"]}), [AUDIENCE]),
    ],
    ids=["unknown", "another account", "for somebody else", "of no node", "not good"],
)
async def test_other_token_identifies_no_node(status: ReviewStatus) -> None:
    connection, clock = ScriptedConnection(status, GOOD), FakeClock()
    at = tokens(connection, clock)
    assert [await at.node("t"), await at.node("t")] == [None, None]
    assert len(connection.asked) == 1
    clock.pass_s(REFUSED_S)
    assert await at.node("t") == "n0"


async def test_empty_or_oversized_token_is_not_reviewed() -> None:
    connection = ScriptedConnection(GOOD)
    at = tokens(connection)
    assert [await at.node(""), await at.node("x" * 20_000)] == [None, None]
    assert connection.asked == []


async def test_api_server_refusal_is_reported_and_not_cached() -> None:
    connection = ScriptedConnection(KubeForbidden(KubeStatus(code=403)), GOOD)
    at = tokens(connection)
    with pytest.raises(Unavailable, match="did not review the token"):
        await at.node("t")
    assert await at.node("t") == "n0"


async def test_unknown_tokens_do_not_flood_api_server() -> None:
    connection = ScriptedConnection(ReviewStatus())
    connection.gate = asyncio.Event()
    at = tokens(connection)
    waiting = [asyncio.create_task(at.node(f"t{n}")) for n in range(MOST_ASKING)]
    while len(connection.asked) < MOST_ASKING:
        await asyncio.sleep(0)
    with pytest.raises(Unavailable, match="Too many token reviews"):
        await at.node("one more")
    connection.gate.set()
    assert await asyncio.gather(*waiting) == [None] * MOST_ASKING
