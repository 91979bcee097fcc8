"""Leadership by a real Lease: takeover, resignation, and a leader that stops."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from benchpool_cluster.access import Access
from benchpool_scheduler.kube import Connection, Election, ElectionTiming, NotLeading, connect
from benchpool_scheduler.kube.kinds import CONFIG_MAPS, LEASES
from benchpool_support.waiting import PATIENCE_S, until_async

pytestmark = pytest.mark.kubernetes
TIMING = ElectionTiming()
"""Timing of the product: a shorter lease is lost on a busy machine."""


def part(connection: Connection, namespace: str, who: str) -> Election:
    address = f"http://{who}:8080"
    return Election(connection, namespace, "scheduler", who, address=address, timing=TIMING)


async def test_standby_leads_after_resignation(connection: Connection, namespace: str) -> None:
    one, two = (part(connection, namespace, who) for who in ("one", "two"))
    assert await one.win() == 1
    one.guard()
    keeping = asyncio.create_task(one.keep())
    winning = asyncio.create_task(two.win())

    async def renewed() -> datetime:
        lease: Any = await connection.get(LEASES, "scheduler", namespace=namespace)
        return datetime.fromisoformat(lease["spec"]["renewTime"])

    # Longer than the duration of an unrenewed lease.
    enough = await renewed() + timedelta(seconds=TIMING.duration_s)
    await until_async(renewed, holds=lambda at: at > enough)
    assert one.leads
    assert not winning.done()
    with pytest.raises(NotLeading, match="one does"):
        two.guard()
    assert two.leader is not None
    assert two.leader.address == "http://one:8080"
    keeping.cancel()
    await one.resign()
    with pytest.raises(NotLeading):
        one.guard()
    async with asyncio.timeout(PATIENCE_S):
        assert await winning == 2
    two.guard()


async def test_leader_ends_when_lease_is_taken_or_deleted(
    connection: Connection, namespace: str
) -> None:
    one = part(connection, namespace, "one")
    await one.win()
    keeping = asyncio.create_task(one.keep())
    change = {"spec": {"holderIdentity": "somebody", "leaseTransitions": 7}}
    await connection.patch(LEASES, "scheduler", change, namespace=namespace)
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(NotLeading, match="belongs to another replica now"):
            await keeping
    assert not one.leads


async def test_leader_failing_to_renew_ends_before_next_leads(
    access: Access, connection: Connection, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connect(access.kubeconfig) as cut_off:
        one = part(cut_off, namespace, "one")
        await one.win()
        keeping = asyncio.create_task(one.keep())
        two = part(connection, namespace, "two")
        winning = asyncio.create_task(two.win())

        async def swallowed(*words: Any, **more: Any) -> bytes:
            await asyncio.sleep(3600)
            raise AssertionError("no answer comes")

        monkeypatch.setattr(cut_off, "request", swallowed)
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(NotLeading):
                await keeping
        assert not winning.done()
        async with asyncio.timeout(PATIENCE_S):
            assert await winning == 2
        assert not one.leads


WRITER = """
import asyncio, sys
from pathlib import Path
from benchpool_scheduler.kube import Election, NotLeading, connect
from benchpool_scheduler.kube.kinds import CONFIG_MAPS

async def main(kubeconfig, namespace, who):
    async with connect(Path(kubeconfig)) as own, connect(Path(kubeconfig)) as connection:
        election = Election(own, namespace, "scheduler", who)
        epoch = await election.win()
        connection.guard = election.guard
        keeping = asyncio.ensure_future(election.keep())
        print("leads", epoch, flush=True)
        number = 0
        async def write(lane):
            nonlocal number
            while True:
                number += 1
                name = f"{who}-{number}"
                body = {"metadata": {"name": name, "labels": {"epoch": str(epoch)}}}
                await connection.create(CONFIG_MAPS, body, namespace=namespace)
        lanes = [asyncio.ensure_future(write(lane)) for lane in range(4)]
        done, _ = await asyncio.wait([keeping, *lanes], return_when=asyncio.FIRST_COMPLETED)
        failed = [task.exception() for task in done]
        print("ends", [type(it).__name__ for it in failed], flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


@contextlib.asynccontextmanager
async def writer(
    access: Access, namespace: str, who: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    words = ["-c", WRITER, str(access.kubeconfig), namespace, who]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *words, stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def next_line(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE_S):
        return (await process.stdout.readline()).decode().strip()


async def test_stopped_leader_writes_nothing_after_takeover(
    access: Access, connection: Connection, namespace: str
) -> None:
    async with writer(access, namespace, "old") as old:
        assert await next_line(old) == "leads 1"
        await until_async(lambda: _names(connection, namespace, "epoch=1"))
        old.send_signal(signal.SIGSTOP)
        async with writer(access, namespace, "new") as new:
            assert await next_line(new) == "leads 2"
            of_new = await until_async(lambda: _names(connection, namespace, "epoch=2"))
            of_old = await _names(connection, namespace, "epoch=1")
            old.send_signal(signal.SIGCONT)
            assert "NotLeading" in await next_line(old)
            await until_async(
                lambda: _names(connection, namespace, "epoch=2"), holds=lambda now: now > of_new
            )
            assert await _names(connection, namespace, "epoch=1") == of_old


async def _names(connection: Connection, namespace: str, labels: str) -> set[str]:
    listed = await connection.list(CONFIG_MAPS, namespace=namespace, labels=labels)
    return {it["metadata"]["name"] for it in listed.items}
