"""Time from Send to a job's first log line, with a value of the notebook in the bundle.

``python benchmarks/values_along.py [--mib 200] [--runs 5]``

On one machine, ``benchpool up`` starts a hub and a pool, and this process is the notebook's kernel.
Each run sends a new array that was never uploaded, then the same array again. For comparison, the
same bytes are processed without benchpool: written with NumPy, hashed, written again and
synchronized, copied, read with NumPy, and printed by a kernel of Jupyter's own.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import checkout  # noqa: F401
import numpy
from jupyter_client.manager import start_new_kernel
from tables import Figure, show

from benchpool import handles, live_values
from benchpool.drafts import JobOptions
from benchpool.keep import Keep
from benchpool.live_values import MOST_BYTES
from benchpool.magic import cells_of, draft_of
from benchpool.values import sending
from benchpool_scheduler.client import snapshot
from benchpool_support.workstation import start

CELL = """
import json, os, pathlib, time
def began(pid):
    ticks = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")
stamps = {"runner": began(os.getppid()), "kernel": began(os.getpid()), "cell": time.time()}
print("first line", x.nbytes, json.dumps(stamps), flush=True)
"""
FIRST = "first line"

PARTS = (
    "the kernel writes it",
    "hashed",
    "cells chosen, job drafted",
    "uploaded",
    "accepted",
    "started: its turn, its files laid out, its process",
    "its kernel's process",
    "its kernel ready, the value loaded",
    "its first line here",
)
FLOOR = (
    "written with NumPy",
    "hashed",
    "written again, synchronized",
    "copied",
    "a kernel of Jupyter's own prints",
    "read with NumPy",
)


def sent(key: str) -> list[float]:
    """Send a cell with the array ``x`` of this session; return the times of its steps."""
    at = [time.time()]
    with tempfile.TemporaryDirectory(prefix="benchpool-values-") as name:
        folder = Path(name)
        report = sending.write(["x"], name, False, MOST_BYTES)
        at.append(time.time())
        values = live_values.of_folder(folder, report)
        at.append(time.time())
        options = JobOptions(key=key, values=values, keep=Keep(()))
        draft = draft_of(
            cells_of(["import numpy", ""], CELL), options, os.environ, sys.executable
        ).check()
        at.append(time.time())
        client = handles.client()
        client.preview(draft.submission)
        snapshot.upload(client, draft.contents)
        at.append(time.time())
        job = handles.JobHandle(client.submit(draft.submission))
        at.append(time.time())
    text, now = "", 0.0
    for piece in job.follow():
        text += piece
        now = time.time()
        if FIRST in text and text.endswith("\n"):
            break
    line = next(each for each in text.splitlines() if each.startswith(FIRST))
    stamps = json.loads(line.split(maxsplit=3)[3])
    job.wait()
    return [*at, stamps["runner"], stamps["kernel"], stamps["cell"], now]


def floor(array: numpy.ndarray) -> list[float]:
    """Return the seconds that the same steps take without benchpool."""
    with tempfile.TemporaryDirectory(dir=os.getcwd()) as name:
        first, second, third = (Path(name, each) for each in ("first.npy", "second", "third"))
        return [
            _timed(lambda: numpy.save(first, array)),
            _timed(lambda: _hashed(first)),
            _timed(lambda: _synchronized(first, second)),
            _timed(lambda: shutil.copyfile(second, third)),
            _timed(_printed),
            _timed(lambda: numpy.load(first)),
        ]


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _hashed(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _synchronized(path: Path, target: Path) -> None:
    with path.open("rb") as source, target.open("wb") as file:
        shutil.copyfileobj(source, file, 1 << 20)
        file.flush()
        os.fsync(file.fileno())


def _printed() -> None:
    manager, client = start_new_kernel()
    try:
        client.execute_interactive("print('first line')", output_hook=lambda _: None)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def measure(mib: int, runs: int) -> None:
    """Print the tables."""
    first, again, least = [], [], []
    for run in range(runs):
        array = numpy.random.default_rng(run).integers(0, 256, mib << 20, "u1")
        sys.modules["__main__"].__dict__["x"] = array
        first.append(sent(f"new-{run}"))
        again.append(sent(f"same-{run}"))
        least.append(floor(array))
    handles.disconnect()
    totals = [at[-1] - at[0] for at in first]
    floors = [sum(each) for each in least]
    ratios = [total / each for total, each in zip(totals, floors, strict=True)]
    show(
        f"Send to the first log line, with a value of {mib} MiB along",
        [
            Figure("sent for the first time", "s", tuple(totals)),
            Figure("sent again, unchanged", "s", tuple(at[-1] - at[0] for at in again)),
            Figure("the same with nothing of ours", "s", tuple(floors)),
            Figure("how many times as long, each run by the one beside it", "", tuple(ratios)),
        ],
    )
    parts = [tuple(at[n + 1] - at[n] for at in first) for n in range(len(PARTS))]
    show("Its parts", list(map(_seconds, PARTS, parts)))
    alone = [tuple(each[n] for each in least) for n in range(len(FLOOR))]
    show("Ours left out", list(map(_seconds, FLOOR, alone)))


def _seconds(what: str, runs: tuple[float, ...]) -> Figure:
    return Figure(what, "s", runs)


def main() -> None:
    """Start a pool and measure in a folder beside it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=200)
    parser.add_argument("--runs", type=int, default=5)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="benchpool-bench-") as name:
        state, work, before = Path(name, "state"), Path(name, "work"), os.getcwd()
        work.mkdir()
        with start(state, gpus=2):
            os.environ["BENCHPOOL_STATE"] = str(state)
            os.chdir(work)
            try:
                measure(wanted.mib, wanted.runs)
            finally:
                os.chdir(before)


if __name__ == "__main__":
    main()
