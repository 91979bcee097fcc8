"""A shell in a job is limited to the job's owner, applies input once, and never blocks."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from benchpool_scheduler.contract import Job, State
from benchpool_scheduler.contract.shells import ShellInput, ShellOpening, ShellQuery
from benchpool_scheduler.errors import Forbidden, NotFound, Refused, TooMany
from benchpool_scheduler.runtime import WorkerId
from benchpool_scheduler.service import Caller, Pool
from benchpool_scheduler.service.jobs import shells
from benchpool_support.pools import ADMIN, JOE, SUSAN, make_pool, opened, reached, sleeper
from benchpool_support.scripted import ScriptedRuntime, devices

HERE = ShellOpening(rows=30, columns=100)


class Echo:
    """A shell that prints its input; ``exit`` ends it with code 3."""

    def __init__(self) -> None:
        self.printed: asyncio.Queue[bytes] = asyncio.Queue()
        self.size = (0, 0)
        self.closed = 0

    async def read(self) -> bytes:
        return await self.printed.get()

    async def write(self, data: bytes) -> None:
        self.printed.put_nowait(b"" if data == b"exit" else data)

    def resize(self, rows: int, columns: int) -> None:
        self.size = (rows, columns)

    async def close(self) -> int | None:
        self.closed += 1
        self.printed.put_nowait(b"")
        return 3


class Entered(ScriptedRuntime):
    """Workers in which shells can be opened."""

    def __init__(self) -> None:
        super().__init__(devices(4))
        self.shells: list[Echo] = []

    async def shell(self, worker: WorkerId, rows: int, columns: int, term: str) -> Echo:
        self.shells.append(Echo())
        self.shells[-1].resize(rows, columns)
        return self.shells[-1]


async def running(pool: Pool) -> Job:
    job = await pool.jobs.submit(SUSAN, sleeper())
    return await reached(pool, job.id, State.RUNNING)


async def test_shell_is_limited_to_job_owner(tmp_path: Path) -> None:
    runtime = Entered()
    async with opened(make_pool(tmp_path, runtime=runtime)) as pool:
        job, door = await running(pool), pool.inside.shells
        service = Caller("hub", kind="service")
        for other in (ADMIN, service):
            with pytest.raises(Forbidden, match="only susan may open a shell in it"):
                await door.open(other, job.id, HERE)
        with pytest.raises(NotFound):
            await door.open(JOE, job.id, HERE)
        assert runtime.shells == []
        opened_ = await door.open(SUSAN, job.id, HERE)
        assert (opened_.job, opened_.attempt, opened_.worker) == (job.id, 1, 0)
        assert runtime.shells[0].size == (30, 100)
        for other in (ADMIN, JOE, service):
            with pytest.raises(NotFound):
                await door.type(other, job.id, ShellInput(opened_.shell, 1, b"x"))
            with pytest.raises(NotFound):
                await door.read(other, job.id, ShellQuery(opened_.shell), 0.0)


async def test_shell_input_is_applied_once_until_shell_ends(
    tmp_path: Path,
) -> None:
    runtime = Entered()
    async with opened(make_pool(tmp_path, runtime=runtime)) as pool:
        job, door = await running(pool), pool.inside.shells
        id_ = (await door.open(SUSAN, job.id, HERE)).shell
        for number in (1, 1, 2):  # the request was retried after a lost answer
            await door.type(SUSAN, job.id, ShellInput(id_, number, f"{number};".encode()))
        read, offset = b"", 0
        while read != b"1;2;":
            chunk = await door.read(SUSAN, job.id, ShellQuery(id_, offset), 10.0)
            read, offset = read + chunk.data, chunk.next
        assert (await door.read(SUSAN, job.id, ShellQuery(id_, 2), 0.0)).data == b"2;"
        await door.type(SUSAN, job.id, ShellInput(id_, 3, rows=5, columns=6))
        assert runtime.shells[0].size == (5, 6)
        await door.type(SUSAN, job.id, ShellInput(id_, 4, b"exit"))
        last = await door.read(SUSAN, job.id, ShellQuery(id_, offset), 10.0)
        assert (last.data, last.ended, last.exit_code) == (b"", True, 3)
        assert last.text == "The shell has ended."


async def test_open_shells_per_user_are_limited(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path, runtime=Entered())) as pool:
        job, door = await running(pool), pool.inside.shells
        ids = [(await door.open(SUSAN, job.id, HERE)).shell for _ in range(shells.MOST_OF_USER)]
        with pytest.raises(TooMany, match=r"At most 4 .*, and you have 4"):
            await door.open(SUSAN, job.id, HERE)
        await door.type(SUSAN, job.id, ShellInput(ids[0], 1, hang_up=True))
        ended = await door.read(SUSAN, job.id, ShellQuery(ids[0]), 10.0)
        assert ended.ended
        await door.open(SUSAN, job.id, HERE)


async def test_shell_is_refused_without_running_worker(tmp_path: Path) -> None:
    runtime = ScriptedRuntime(devices(4))
    async with opened(make_pool(tmp_path, runtime=runtime)) as pool:
        job, door = await running(pool), pool.inside.shells
        with pytest.raises(Refused, match="This pool cannot open shells in its workers"):
            await door.open(SUSAN, job.id, HERE)
    async with opened(make_pool(tmp_path / "other", runtime=Entered())) as pool:
        first, waits = await running(pool), await pool.jobs.submit(SUSAN, sleeper())
        with pytest.raises(Refused, match="is queued: a shell needs a running job"):
            await pool.inside.shells.open(SUSAN, waits.id, HERE)
        with pytest.raises(Refused, match="has no running worker 7; there are 0"):
            await pool.inside.shells.open(SUSAN, first.id, ShellOpening(worker=7))
