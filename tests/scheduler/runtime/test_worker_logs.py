"""The log of a worker: live, bounded, and the same bytes at the same offsets."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchpool_scheduler.runtime import WorkerId
from benchpool_scheduler.runtime.local import LocalRuntime, simulated
from benchpool_scheduler.worker import log_reader
from benchpool_scheduler.worker.log_files import SEGMENTS
from benchpool_scheduler.worker.log_writer import LogWriter, TokenBucket
from benchpool_support.workers import (
    Listener,
    python_launch,
    until_logged,
    whole_log,
    worker_id,
)


async def follow(
    runtime: LocalRuntime, worker: WorkerId, limit: int = 1000
) -> list[tuple[int, bytes]]:
    """Follow a log to its end as a client does; return (offset, bytes) of each chunk."""
    found: list[tuple[int, bytes]] = []
    offset = 0
    async with asyncio.timeout(60):
        while True:
            await runtime.wait_log(worker, offset, 30)
            chunk = await runtime.read_log(worker, offset, limit)
            assert chunk.offset == offset + chunk.skipped
            if chunk.data:
                found.append((chunk.offset, chunk.data))
            offset = chunk.next_offset
            if chunk.ended:
                return found


async def test_log_contains_stdout_and_stderr_in_order(
    runtime: LocalRuntime, listener: Listener
) -> None:
    launch = python_launch(
        "import sys\nfor n in range(3): print('out', n); print('err', n, file=sys.stderr)"
    )
    await runtime.start(launch)
    await listener.ended(launch.worker)
    assert await whole_log(runtime, launch.worker) == (
        b"out 0\nerr 0\nout 1\nerr 1\nout 2\nerr 2\n"
    )


async def test_log_follower_gets_every_byte_once_and_then_end(
    runtime: LocalRuntime, listener: Listener
) -> None:
    launch = python_launch("for n in range(5000): print('line', n)")
    await runtime.start(launch)
    chunks = await follow(runtime, launch.worker)
    assert b"".join(data for _, data in chunks) == b"".join(b"line %d\n" % n for n in range(5000))


async def test_log_is_readable_while_worker_runs(runtime: LocalRuntime, listener: Listener) -> None:
    launch = python_launch("import time; print('first'); time.sleep(60)")
    await runtime.start(launch)
    assert await runtime.wait_log(launch.worker, 0, 10)
    chunk = await runtime.read_log(launch.worker, 0, 100)
    assert (chunk.data, chunk.ended) == (b"first\n", False)


async def test_log_wait_returns_false_on_timeout(runtime: LocalRuntime, listener: Listener) -> None:
    launch = python_launch("import time; print('first'); time.sleep(60)")
    await runtime.start(launch)
    await until_logged(runtime, launch.worker, b"first\n")
    assert not await runtime.wait_log(launch.worker, 6, 0.2)


async def test_missing_log_is_empty_and_not_ended(runtime: LocalRuntime) -> None:
    chunk = await runtime.read_log(worker_id(), 0, 100)
    assert (chunk.offset, chunk.data, chunk.ended) == (0, b"", False)


@pytest.mark.parametrize("bound", [64 * 1024])
async def test_log_flood_keeps_head_and_tail_and_reports_gap(state: Path, bound: int) -> None:
    runtime = LocalRuntime(state, simulated(1), log_bytes=bound)
    await runtime.open([])
    listener = Listener(runtime)
    launch = python_launch("import sys\nfor n in range(100_000): sys.stdout.write(f'{n:09d}\\n')")
    await runtime.start(launch)
    await listener.ended(launch.worker)
    folder = state / "jobs" / launch.worker.job / "attempts" / "1" / "worker-0"
    on_disk = sum(path.stat().st_size for path in folder.glob("log*"))
    chunks = await follow(runtime, launch.worker, limit=1 << 20)
    assert on_disk <= bound
    assert chunks[0][0] == 0
    assert chunks[0][1].startswith(b"000000000\n")
    assert chunks[-1][1].endswith(b"000099999\n")
    for offset, data in chunks:  # each line of ten bytes contains its own offset
        start = -offset % 10
        assert int(data[start : start + 9]) * 10 == offset + start
    assert chunks[-1][0] + len(chunks[-1][1]) == 1_000_000
    gap = await runtime.read_log(launch.worker, bound // 2 + 1, 100)
    assert gap.skipped > 0
    await listener.close()
    await runtime.close()


async def test_flooding_worker_does_not_delay_second_log(
    runtime: LocalRuntime, listener: Listener, tmp_path: Path
) -> None:
    flood = python_launch("while True: print('x' * 60_000)")
    answers = tmp_path / "answers"
    os.mkfifo(answers)
    print_and_wait = f"print(n)\n    open({str(answers)!r}).read()"
    quiet = python_launch(f"for n in range(5):\n    {print_and_wait}")
    await runtime.start(flood)
    assert await runtime.wait_log(flood.worker, 1 << 20, 10)
    await runtime.start(quiet)
    offset, lines = 0, list[bytes]()
    while len(lines) < 5:  # each line is read before the worker writes the next
        assert await runtime.wait_log(quiet.worker, offset, 30)
        chunk = await runtime.read_log(quiet.worker, offset, 1000)
        offset = chunk.next_offset
        for line in chunk.data.split():
            lines.append(line)
            await asyncio.to_thread(answers.write_text, "")
    assert lines == [b"0", b"1", b"2", b"3", b"4"]


@settings(deadline=None)  # it writes real files
@given(
    bound=st.integers(2 * SEGMENTS, 200),
    writes=st.lists(st.binary(max_size=60), max_size=40),
    limit=st.integers(1, 100),
)
def test_log_head_and_tail_are_read_back_by_offset(
    bound: int, writes: list[bytes], limit: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        writer = LogWriter(folder, bound)
        for data in writes:
            writer.write(data)
        writer.close()
        stream = b"".join(writes)
        assert log_reader.size(Path(folder)) == len(stream)
        offset, kept = 0, 0
        while True:
            start, data = log_reader.read(Path(folder), offset, limit)
            if not data:
                break
            assert data == stream[start : start + len(data)]
            kept += len(data)
            offset = start + len(data)
        assert offset == len(stream)
        assert kept <= bound
        assert log_reader.read(Path(folder), 0, bound // 2)[1] == stream[: bound // 2]


@given(st.lists(st.tuples(st.integers(1, 1000), st.floats(0, 10)), max_size=50))
def test_token_bucket_allows_burst_then_rate(steps: list[tuple[int, float]]) -> None:
    rate, burst, now, taken = 100.0, 500.0, 0.0, 0
    bucket = TokenBucket(rate, burst, now)
    for amount, pause in steps:
        now += pause + bucket.wait(now + pause)
        bucket.take(amount, now)
        taken += amount
        assert taken <= burst + rate * now + amount
