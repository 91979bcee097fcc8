"""jupyterhub-idle-culler stops GPU servers only by the scheduler's facts."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from jupyterhub_idle_culler import cull_idle
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port
from tornado.web import Application, RequestHandler

from benchpool_scheduler.contract import LeaseRequest, ParkStep
from benchpool_scheduler.contract.idle_benches import BenchAct, BenchCommand, BenchIdleness
from benchpool_scheduler.contract.idle_benches import BenchStep as Step
from benchpool_scheduler.core.benches.giving_back import Giving
from benchpool_scheduler.core.benches.idle import IdleStep
from benchpool_scheduler.core.benches.parking import ParkState
from benchpool_spawner.cull_arbiter import (
    FRESH_S,
    Arbiter,
    cull_arbiter,
    may_be_culled,
)
from benchpool_support.clocks import FakeClock
from benchpool_support.idle_site import stand
from benchpool_support.parkers import ScriptedParker
from benchpool_support.serving import Served, served
from benchpool_support.waiting import until

CONFIGURATION = """\
version: 1
build: {users: {susan: 2, joe: 1}, lend_idle: true, parking: true}
idle_benches:
  act: true
  exempt: [{who: joe, until: 2099-12-31}]
"""
LATER = datetime(2026, 11, 23, 15, tzinfo=UTC)


def bench(**more: Any) -> BenchIdleness:
    """Return a bench that is due unless the arguments change it."""
    usual: dict[str, Any] = {
        "lease": "l1", "user": "susan", "server": "", "gpus": ["GPU-0"], "step": Step.DUE,
        "idle_s": 3600.0, "coverage": 1.0, "kept_until": None, "keeps_left": 2, "keep_s": 3600.0,
        "exempt_until": None, "tell_s": 900.0, "ask_s": 2700.0, "act_s": 3600.0,
        "act": BenchAct.STOP, "acts_at": None, "next": None, "next_at": None,
        "command": BenchCommand.NONE,
    }  # fmt: skip
    return BenchIdleness(**{**usual, **more})


@pytest.mark.parametrize("step", Step)
def test_bench_is_culled_only_while_hub_is_to_stop_it(step: Step) -> None:
    assert not may_be_culled(bench(step=step))
    assert may_be_culled(bench(step=step, stopping=True))


@pytest.mark.parametrize("spared", ["kept_until", "exempt_until"])
def test_spared_bench_is_not_culled(spared: str) -> None:
    assert not may_be_culled(bench(stopping=True, **{spared: LATER}))


@dataclass
class ScriptedHub:
    """The part of the Hub's API that the culler uses: users with servers, and stopped servers.

    All servers were last active two hours ago.
    """

    servers: list[tuple[str, str]]
    stopped: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        hub = self

        class Version(RequestHandler):
            def get(self) -> None:
                self.finish({"version": "6.1.1"})

        class Users(RequestHandler):
            def get(self) -> None:
                self.finish(json.dumps([hub.user(it) for it in {user for user, _ in hub.servers}]))

        class OneServer(RequestHandler):
            def delete(self, what: str) -> None:
                hub.stopped.append(what)
                self.set_status(204)

        socket, port = bind_unused_port()
        routes = [("/", Version), ("/users", Users), ("/users/(.*)", OneServer)]
        self.http = HTTPServer(Application(routes))
        self.http.add_socket(socket)
        self.url = f"http://127.0.0.1:{port}"

    def user(self, user: str) -> dict[str, Any]:
        """Return a user in the format of the Hub."""
        active = (datetime.now(UTC) - timedelta(hours=2)).isoformat()
        return {
            "name": user,
            "servers": {
                name: {
                    "name": name,
                    "full_name": f"{user}/{name}",
                    "last_activity": active,
                    "started": active,
                    "pending": None,
                    "ready": True,
                    "url": f"/user/{user}/{name}",
                }
                for owner, name in self.servers
                if owner == user
            },
        }

    async def culled(self, arbiter: Arbiter, timeout_s: int = 3600) -> list[str]:
        """Return the servers that one round of the real culler stops."""
        self.stopped.clear()
        log = logging.getLogger("culler")
        await cull_idle(self.url, "token", timeout_s, log, cull_arbiter=arbiter)
        return sorted(self.stopped)


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path, configuration=CONFIGURATION, gpus=3) as service:
        yield service


def hold(pool: Served, user: str, server: str) -> str:
    request = LeaseRequest(user=user, server=server, spawn=f"{user}-{server}", gpus=1)
    return pool.client("hub").reserve(request).id


@pytest.mark.slow
async def test_culler_stops_due_benches_and_servers_without_gpus(pool: Served) -> None:
    used, other = hold(pool, "susan", ""), hold(pool, "susan", "lab")
    exempt = hold(pool, "joe", "")
    hub = ScriptedHub([("susan", ""), ("susan", "lab"), ("joe", ""), ("jemma", "")])
    stand(pool, used, IdleStep.USED)
    stand(pool, exempt, IdleStep.DUE, Giving.STOPPING)

    async def culled(timeout_s: int = 3600) -> list[str]:
        return await hub.culled(cull_arbiter(pool.url, "hub"), timeout_s)

    for step, giving in (
        (IdleStep.ASKED, Giving.NONE),
        (IdleStep.DUE, Giving.NONE),  # nothing has begun: it may still be parked
        (IdleStep.DUE, Giving.RELEASING),
        (IdleStep.DUE, Giving.NOTING),
    ):
        stand(pool, other, step, giving)
        assert await culled() == ["jemma/server"]
    stand(pool, other, IdleStep.DUE, Giving.STOPPING)
    assert await culled() == ["jemma/server", "susan/servers/lab"]
    assert await culled(timeout_s=10_000) == ["susan/servers/lab"]
    await asyncio.to_thread(pool.client("hub").release, used)
    assert "susan/server" in await culled()  # continues without GPUs


@pytest.mark.slow
async def test_cull_round_queries_scheduler_once(pool: Served) -> None:
    id_, clock = hold(pool, "susan", ""), FakeClock()
    stand(pool, id_, IdleStep.DUE, Giving.STOPPING)
    hub = ScriptedHub([("susan", ""), ("jemma", ""), ("root", "")])
    arbiter = cull_arbiter(pool.url, "hub", monotonic=clock.now)
    assert "susan/server" in await hub.culled(arbiter)
    stand(pool, id_, IdleStep.USED)
    clock.pass_s(FRESH_S - 1)
    assert "susan/server" in await hub.culled(arbiter)
    clock.pass_s(1)
    assert await hub.culled(arbiter) == ["jemma/server", "root/server"]


@pytest.mark.slow
@pytest.mark.parametrize(("away", "why"), [(True, "not answer|not reach"), (False, "token|log")])
async def test_unavailable_scheduler_prevents_culling(
    pool: Served, away: bool, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    hub = ScriptedHub([("susan", ""), ("jemma", "")])
    socket, port = bind_unused_port()
    socket.close()
    url = f"http://127.0.0.1:{port}/services/benchpool" if away else pool.url
    assert await hub.culled(cull_arbiter(url, "nobody's")) == []
    messages = [
        it.getMessage() for it in caplog.records if "No server is culled" in it.getMessage()
    ]
    assert len(messages) == 1
    assert re.search(why, messages[0])


@pytest.mark.slow
async def test_parked_bench_is_not_culled(tmp_path: Path) -> None:
    parker = ScriptedParker(ParkState.LOCKING)
    hub = ScriptedHub([("susan", ""), ("jemma", "")])
    with served(tmp_path, configuration=CONFIGURATION, gpus=3, parker=parker) as pool:
        susan = pool.client("susan")

        async def culled() -> list[str]:
            return await hub.culled(cull_arbiter(pool.url, "hub"))

        def stands(*steps: ParkStep) -> None:
            until(lambda: tuple(it.step for it in susan.parked_benches()) == steps, f"{steps}")

        lease = hold(pool, "susan", "")
        stand(pool, lease, IdleStep.DUE)
        susan.park_bench(lease)
        stands(ParkStep.PARKING)
        assert await culled() == ["jemma/server"]
        parker.goal = ParkState.PARKED
        stands(ParkStep.PARKED)
        assert susan.benches() == []  # the culler sees a server without GPUs
        assert await culled() == ["jemma/server"]
        parker.goal = ParkState.RUNNING
        susan.unpark_bench(lease)
        stands()
        assert await culled() == ["jemma/server"]
        pool.client("hub").release(lease)
        assert await culled() == ["jemma/server", "susan/server"]
