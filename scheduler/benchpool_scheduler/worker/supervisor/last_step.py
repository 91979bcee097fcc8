"""What is done for a worker that could not do it itself: its runs in trackers are closed.

A process that is killed leaves its run of MLflow as running. Where its file says so
(see ``tracker_runs``), the Python that began the run closes it: as the worker's account, in the
worker's bounds, with the worker's variables, so that keys reach nobody who did not have them.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time

from .. import records
from . import child, containment, private_folder

MODULE = "benchpool.metrics.close_runs"
PATIENCE_S = 10.0
"""A tracker that does not answer keeps the worker's GPUs from others for at most this long."""
OUTPUT = 4096
"""Bytes of what the step says that are kept."""


def close_runs(place: child.StartPlace, code: int, tag: str) -> list[str]:
    """Close what a worker left open; return what its log is to say.

    Args:
        place: Where the worker ran. ``code``: how it ended. ``tag``: see ``SupervisorConfig``.
    """
    try:
        python = left_open(place.reach)
        if python is None:
            return []
        return own_lines(_run([python, "-m", MODULE, str(code)], place, tag))
    except (OSError, child.StartFailed) as error:
        return [f"its runs in trackers could not be closed: {error}"]


def left_open(exchange: str) -> str | None:
    """Return the Python that can close the runs that are still open; None where none is.

    It stands here, not in ``tracker_runs``: a supervisor stays small by what it does not import.
    """
    value = records.read(exchange, records.RUNS) or {}
    python, runs = value.get("python"), value.get("runs")
    if not isinstance(python, str) or not os.path.isabs(python) or "\0" in python:
        return None
    told = runs if isinstance(runs, list) else []
    return python if any(isinstance(it, dict) and it.get("open") is True for it in told) else None


def _run(argv: list[str], place: child.StartPlace, tag: str) -> bytes:
    """Run it to its end or for so long, with no GPU; nothing of it is left. Errors: OSError, ..."""
    _begin_anew(place.confinement.private)
    reader, writer = os.pipe2(os.O_CLOEXEC)
    env = {**place.env, "CUDA_VISIBLE_DEVICES": "", "BENCHPOOL_HOOKS": "none"}
    try:
        step = child.StartPlace(env, place.cwd, place.confinement, place.reach)
        try:
            pid = child.spawn(argv, step, writer)
        finally:
            os.close(writer)
        said = _read(reader, time.monotonic() + PATIENCE_S)
    finally:
        os.close(reader)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    containment.sweep_until_clean(tag, place.confinement.group, 0.01)
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, 0):
            pass
    return said


def _begin_anew(private: str | None) -> None:
    """Empty the own temporary folders: links that the worker left there must lead us nowhere."""
    if private is not None:
        private_folder.remove(os.path.dirname(private))
        os.mkdir(private, 0o700)


def _read(reader: int, until: float) -> bytes:
    """Return what it says until it closes its output, or until then."""
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    said = b""
    while (left := until - time.monotonic()) > 0:
        if not poll.poll(left * 1000):
            continue
        data = os.read(reader, OUTPUT)
        if not data:
            return said
        said = (said + data)[:OUTPUT]
    late = f"benchpool: its runs in trackers could not be closed within {PATIENCE_S:g} s"
    return said + f"\n{late}\n".encode()


def own_lines(output: bytes) -> list[str]:
    """Return the lines that are ours: libraries warn of much."""
    lines = output.decode(errors="replace").splitlines()
    return [line.removeprefix("benchpool: ") for line in lines if line.startswith("benchpool: ")]
