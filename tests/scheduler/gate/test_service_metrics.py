"""Figures of a service over the last minute, and the replicas that answer its requests."""

from __future__ import annotations

import asyncio

import httpx
from hypothesis import given
from hypothesis import strategies as some

from benchpool_scheduler.gate import Openness
from benchpool_scheduler.gate.figures import MOST_SAMPLES, RequestFigures, quantile
from benchpool_support.clocks import FakeClock
from benchpool_support.gate_stage import Stage, echo, raw
from benchpool_support.waiting import until_async


@given(some.lists(some.floats(0, 1000), min_size=1), some.floats(0.01, 1))
def test_quantile_has_required_share_at_or_below(values: list[float], share: float) -> None:
    value = quantile(sorted(values), share)
    assert value is not None
    assert sum(one <= value for one in values) >= share * len(values) - 1e-9
    assert sum(one < value for one in values) < share * len(values)


def test_figures_cover_last_minute() -> None:
    clock = FakeClock()
    figures = RequestFigures(clock.now)
    for number in range(120):
        figures.begin("chat", "j1")
        figures.end("chat", "j1", took_s=number / 1000)
        clock.pass_s(1)
    seen = figures.of("chat")
    assert seen.requests_per_s == 59 / 60
    assert seen.p50_ms is not None
    assert 85 < seen.p50_ms < 95
    clock.pass_s(3600)
    quiet = figures.of("chat")
    assert (quiet.requests_per_s, quiet.p50_ms) == (0.0, None)
    assert quiet.last_request_at == clock.now() - 3601


def test_request_flood_is_counted_with_bounded_samples() -> None:
    clock = FakeClock()
    figures = RequestFigures(clock.now)
    for _ in range(3 * MOST_SAMPLES):
        figures.begin("chat", "j1")
        figures.end("chat", "j1", took_s=0.001)
    assert figures.of("chat").requests_per_s == 3 * MOST_SAMPLES / 60
    assert figures.of("chat").p95_ms == 1.0


def test_many_names_and_replicas_use_bounded_memory() -> None:
    figures = RequestFigures(FakeClock().now)
    for number in range(25_000):
        figures.begin(f"name{number}", f"job{number}")
        figures.end(f"name{number}", f"job{number}", took_s=0.1)
    assert len(figures.turns) <= 10_000


def test_unrequested_service_has_no_figures() -> None:
    figures = RequestFigures(FakeClock().now)
    assert figures.of("none").last_request_at is None
    assert figures.in_flight("none") == 0


async def test_drained_waits_only_for_requests_of_its_replica() -> None:
    figures = RequestFigures(FakeClock().now)
    await asyncio.wait_for(figures.drained("j1"), 120)
    figures.begin("chat", "j1")
    figures.begin("chat", "j1")
    figures.begin("chat", "j2")
    drained = asyncio.ensure_future(figures.drained("j1"))
    await asyncio.sleep(0)
    figures.end("chat", "j1", None)
    await asyncio.sleep(0)
    assert not drained.done()
    figures.end("chat", "j1", None)
    await asyncio.wait_for(drained, 120)
    assert figures.in_flight("chat") == 1


async def test_requests_go_to_replica_with_fewest_open(
    stage: Stage, susan: httpx.AsyncClient
) -> None:
    release = asyncio.Event()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readuntil(b"\r\n\r\n"):
            await release.wait()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with raw(slow, "a") as a, raw(slow, "b") as b, raw(slow, "c") as c:
        stage.directory.set("chat", Openness.READY, (a, b, c))
        asked = [asyncio.ensure_future(susan.get("s/chat/")) for _ in range(9)]
        await until_async(lambda: stage.gate.in_flight("chat") >= 9)
        assert [stage.gate.in_flight("chat", one) for one in "abc"] == [3, 3, 3]
        release.set()
        assert {(await one).content for one in asked} == {b"ok"}
    assert stage.gate.in_flight("chat") == 0


async def test_gate_counts_forwarded_requests(stage: Stage, susan: httpx.AsyncClient) -> None:
    async with echo() as backend:
        stage.directory.set("chat", Openness.READY, (backend,))
        for _ in range(6):
            await susan.get("s/chat/")
        await susan.get("s/other/")
    seen = stage.gate.figures("chat")
    assert seen.requests_per_s == 0.1
    assert seen.p50_ms is not None
    assert seen.p95_ms is not None
    assert 0 < seen.p50_ms <= seen.p95_ms
    assert stage.gate.figures("other").last_request_at is None
