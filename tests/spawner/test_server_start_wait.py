"""A start waits while its server works, without a fixed timeout, and notices its exit."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jupyterhub.spawner import SimpleLocalProcessSpawner

from benchpool_scheduler.worker.process_identity import identity
from benchpool_spawner.first_answer import NothingHappens, while_it_works
from benchpool_spawner.local import LocalGPUSpawner
from benchpool_spawner.refusal import StartRefused
from benchpool_support.waiting import until_async

QUIET_S = 90.0


class Machine:
    """Simulated time and the processor time that a start gets; it answers after some looks."""

    def __init__(self, *used_s: float) -> None:
        self._used_s, self.now = list(used_s), 0.0
        self.answered = asyncio.Event()

    def used_s(self) -> float:
        self.now += QUIET_S - 1
        if not self._used_s:
            self.answered.set()
            return 0.0
        return self._used_s.pop(0)

    async def waited(self) -> bool:
        never = asyncio.get_running_loop().create_future()
        return await while_it_works(
            self.answered.wait(), never, self.used_s, QUIET_S, clock=lambda: self.now, look_s=0
        )


async def test_start_using_processor_is_awaited() -> None:
    machine = Machine(*range(1, 30))
    assert await machine.waited()
    assert machine.now > 25 * QUIET_S


@pytest.mark.parametrize(
    "used_s",
    [[3.0] * 9, [0.0] * 9, [0.1 * n for n in range(9)], [200.0 + 50 * n for n in range(9)]],
    ids=["it stopped", "it never began", "it only waits", "it turns in circles"],
)
async def test_idle_start_times_out(used_s: list[float]) -> None:
    machine = Machine(*used_s)
    with pytest.raises(NothingHappens):
        await machine.waited()
    assert machine.now <= 3 * QUIET_S


class Server:
    """The Hub's server record; it answers when the test allows it."""

    def __init__(self, answers: asyncio.Event) -> None:
        self.ip, self.port, self._answers, self.asked = "", 0, answers, 0

    async def wait_up(self, timeout: float, http: bool, extra_path: str) -> None:
        assert (timeout > 3600, http, extra_path) == (True, True, "api")
        self.asked += 1
        await self._answers.wait()


class Plain(LocalGPUSpawner):
    """A spawner with a given server address."""

    server: Any = None


@pytest.fixture
def spawner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(SimpleLocalProcessSpawner, "get_env", lambda _: {})
    monkeypatch.setattr(SimpleLocalProcessSpawner, "get_args", lambda _: [])
    found: Any = Plain(home_dir=str(tmp_path), port=8123)
    written: list[dict[str, Any]] = []
    found.orm_spawner = SimpleNamespace(state={}, server=None, name="", written=written)
    commit = lambda: written.append(dict(found.orm_spawner.state))  # noqa: E731
    found.user = SimpleNamespace(name="joe", db=SimpleNamespace(commit=commit))
    found.answers = asyncio.Event()
    found.server = Server(found.answers)
    yield found
    if found.proc is not None:
        found.proc.kill()
        found.proc.wait()


def runs(program: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", program]


async def test_server_exit_is_reported_with_exit_code(spawner: Any) -> None:
    spawner.cmd = runs("raise SystemExit(7)")
    async with asyncio.timeout(120):  # far below the start timeout of one day
        with pytest.raises(
            StartRefused, match=r"ended \(exit code 7\) before it .*Start it again. "
        ):
            await spawner.start()


async def test_idle_server_start_is_refused_with_reason(spawner: Any) -> None:
    spawner.cmd, spawner.quiet_timeout = runs("import time; time.sleep(100)"), 1.0
    with pytest.raises(StartRefused, match="did not answer and was idle for 1 s"):
        await spawner.start()


@pytest.fixture
async def starting(spawner: Any) -> AsyncIterator[asyncio.Task[Any]]:
    """Yield a start that waits for the first answer."""
    spawner.cmd = runs("import time; time.sleep(100)")
    task = asyncio.create_task(spawner.start())
    await until_async(lambda: "pid" in spawner.orm_spawner.state)
    assert not task.done()
    yield task
    task.cancel()


def restarted(spawner: Any) -> Any:
    """Return the same server as a restarted Hub loads it."""
    later: Any = Plain(quiet_timeout=spawner.quiet_timeout)
    later.server, later.user, later.orm_spawner = spawner.server, spawner.user, spawner.orm_spawner
    later.load_state(spawner.orm_spawner.written[-1])
    return later


async def test_restarted_hub_awaits_first_answer(spawner: Any, starting: asyncio.Task[Any]) -> None:
    written = spawner.orm_spawner.written[-1]
    assert (written["pid"], written["process"]) == (spawner.pid, identity(spawner.pid))
    assert (spawner.server.ip, spawner.server.port) == ("127.0.0.1", 8123)
    later = restarted(spawner)
    polling = asyncio.create_task(later.poll())
    await until_async(lambda: spawner.server.asked == 2)
    assert await later.poll() is None  # a second poll, before a stop, does not wait
    assert not polling.done()
    spawner.answers.set()
    assert await polling is None
    assert await starting == ("127.0.0.1", 8123)
    assert "unanswered" not in spawner.orm_spawner.state
    assert await restarted(spawner).poll() is None


async def test_restarted_hub_notices_server_exit(spawner: Any, starting: asyncio.Task[Any]) -> None:
    polling = asyncio.create_task(restarted(spawner).poll())
    spawner.proc.kill()
    async with asyncio.timeout(120):  # far below the start timeout of one day
        assert await polling is not None
        with pytest.raises(StartRefused):
            await starting


@pytest.mark.usefixtures("starting")
async def test_restarted_hub_stops_idle_server(spawner: Any) -> None:
    spawner.quiet_timeout = 1.0
    later = restarted(spawner)
    async with asyncio.timeout(120):
        assert await later.poll() == 1
    assert await later.poll() is None  # it still runs; the Hub then stops it
    await later.stop()
    assert await later.poll() is not None
