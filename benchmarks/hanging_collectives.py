"""Processor use of ranks that hang in a collective, and of ranks that only look like it.

``python benchmarks/hanging_collectives.py [--ticks 10] [--tick-s 1.5] [OUT.json]``

It needs ``torch``. Each case has two real ranks of torch's gloo, on CPUs. Their use is read from
``/proc``. ``tests/scheduler/service/hang_cases.json`` is such a recording, which tests the rule for
hangs.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil


def main() -> None:
    """Record all cases."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", nargs="?", type=Path, help="the recording is written here")
    parser.add_argument("--ticks", type=int, default=10, help="samples of each case")
    parser.add_argument("--tick-s", type=float, default=1.5, help="seconds between two of them")
    parser.add_argument("--rank", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.rank:
        run_rank(int(asked.rank[0]), asked.rank[1], asked.rank[2])
        return
    found = []
    for case, hangs in CASES.items():
        cores = record(case, asked.ticks, asked.tick_s)
        print(f"{'hangs' if hangs else 'works'}  {case}: {most(cores)} cores at most")
        found.append({"case": case, "hangs": hangs, "cores": cores})
    if asked.out is not None:
        asked.out.write_text(json.dumps(found, indent=1) + "\n")


CASES = {
    "all_reduce, the other rank sleeps": True,
    "barrier, the other rank waits on a lock": True,
    "two ranks in two different collectives": True,
    "recv from a rank that never sends": True,
    "all_reduce, the other rank sleeps, and a thread of the first computes": True,
    "barrier while the other rank evaluates": False,
    "many small all_reduces without a word": False,
    "plain long computation on both ranks": False,
}
"""Cases, and whether they hang."""


def run_rank(rank: int, case: str, port: str) -> None:
    """Run one of two ranks, which prints a word when it begins with its case."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    dist.init_process_group("gloo", rank=rank, world_size=2, timeout=datetime.timedelta(minutes=30))
    ones = torch.ones(1000)
    dist.all_reduce(ones)
    print("begins", flush=True)

    def compute() -> None:
        while True:
            torch.randn(300, 300) @ torch.randn(300, 300)

    match case, rank:
        case "all_reduce, the other rank sleeps", 0:
            dist.all_reduce(ones)
        case "barrier, the other rank waits on a lock", 0:
            dist.barrier()
        case "barrier, the other rank waits on a lock", 1:
            threading.Event().wait()
        case "two ranks in two different collectives", 0:
            dist.all_reduce(ones)
        case "two ranks in two different collectives", 1:
            dist.all_gather([ones, ones.clone()], ones)
        case "recv from a rank that never sends", _:
            dist.recv(ones, src=1 - rank)
        case "all_reduce, the other rank sleeps, and a thread of the first computes", 0:
            threading.Thread(target=compute, daemon=True).start()
            dist.all_reduce(ones)
        case "barrier while the other rank evaluates", 0:
            dist.barrier()
        case ("barrier while the other rank evaluates", 1) | (
            "plain long computation on both ranks",
            _,
        ):
            compute()
        case "many small all_reduces without a word", _:
            while True:
                dist.all_reduce(ones)
    time.sleep(3600)


def record(case: str, ticks: int, tick_s: float) -> list[list[float]]:
    """Return the CPU cores that each rank used in each tick."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    ranks = [
        subprocess.Popen(
            [sys.executable, __file__, "--rank", str(rank), case, port],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for rank in (0, 1)
    ]
    try:
        for rank in ranks:
            if rank.stdout is None or not rank.stdout.readline():
                raise SystemExit(f"A rank of {case!r} did not begin: is torch installed?")
        time.sleep(1)
        processes = [psutil.Process(rank.pid) for rank in ranks]
        found, before = [], [used(it) for it in processes]
        for _ in range(ticks):
            time.sleep(tick_s)
            now = [used(it) for it in processes]
            pairs = zip(before, now, strict=True)
            found.append([round((b[1] - a[1]) / (b[0] - a[0]), 3) for a, b in pairs])
            before = now
        if any(rank.poll() is not None for rank in ranks):
            raise SystemExit(f"A rank of {case!r} ended while it was measured.")
        return found
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()


def used(process: psutil.Process) -> tuple[float, float]:
    """Return the current time and the processor time of a process, in seconds."""
    times = process.cpu_times()
    return time.monotonic(), times.user + times.system


def most(cores: list[list[float]]) -> str:
    """Return the maximum that each rank used in a tick.

    >>> most([[0.0, 0.5], [0.007, 0.2]])
    '0.007 and 0.5'
    """
    return " and ".join(f"{max(rank):g}" for rank in zip(*cores, strict=True))


if __name__ == "__main__":
    main()
