"""Last step after a worker that was killed: its runs in trackers are closed.

A killed process leaves its run of MLflow as running. If its runs file lists an open run (see
``tracker_runs``), the Python that began the run closes it. The step has the account, the limits and
the variables of the worker, so that no other account gets access to its keys.
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
"""Timeout for a tracker, during which the worker's GPUs stay blocked, in seconds."""
OUTPUT = 4096
"""Most bytes of the step's output that are kept."""


def close_runs(place: child.StartPlace, code: int, tag: str) -> list[str]:
    """Close the runs that a worker left open; return lines for its log.

    Args:
        place: Environment of the worker. ``code``: its exit code. ``tag``: see
            ``SupervisorConfig``.
    """
    try:
        python = left_open(place.reach)
        if python is None:
            return []
        return own_lines(_run([python, "-m", MODULE, str(code)], place, tag))
    except (OSError, child.StartFailed) as error:
        return [f"its runs in trackers could not be closed: {error}"]


def left_open(exchange: str) -> str | None:
    """Return the Python that can close the open runs, or None.

    The function is here rather than in ``tracker_runs`` to keep the supervisor's imports few.
    """
    value = records.read(exchange, records.RUNS) or {}
    python, runs = value.get("python"), value.get("runs")
    if not isinstance(python, str) or not os.path.isabs(python) or "\0" in python:
        return None
    listed = runs if isinstance(runs, list) else []
    return python if any(isinstance(it, dict) and it.get("open") is True for it in listed) else None


def _run(argv: list[str], place: child.StartPlace, tag: str) -> bytes:
    """Run a command without GPUs, with a timeout; kill its processes afterwards.

    Raises OSError or StartFailed.
    """
    _recreate(place.confinement.private)
    reader, writer = os.pipe2(os.O_CLOEXEC)
    env = {**place.env, "CUDA_VISIBLE_DEVICES": "", "BENCHPOOL_HOOKS": "none"}
    try:
        step = child.StartPlace(env, place.cwd, place.confinement, place.reach)
        try:
            pid = child.spawn(argv, step, writer)
        finally:
            os.close(writer)
        output = _read(reader, time.monotonic() + PATIENCE_S)
    finally:
        os.close(reader)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    containment.sweep_until_clean(tag, place.confinement.group, 0.01)
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, 0):
            pass
    return output


def _recreate(private: str | None) -> None:
    """Recreate the private temporary folders, which may contain links of the worker."""
    if private is not None:
        private_folder.remove(os.path.dirname(private))
        os.mkdir(private, 0o700)


def _read(reader: int, until: float) -> bytes:
    """Return the output until it is closed or a time is reached."""
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    output = b""
    while (left := until - time.monotonic()) > 0:
        if not poll.poll(left * 1000):
            continue
        data = os.read(reader, OUTPUT)
        if not data:
            return output
        output = (output + data)[:OUTPUT]
    late = f"benchpool: its runs in trackers could not be closed within {PATIENCE_S:g} s"
    return output + f"\n{late}\n".encode()


def own_lines(output: bytes) -> list[str]:
    """Return the lines of benchpool; libraries print warnings too."""
    lines = output.decode(errors="replace").splitlines()
    return [line.removeprefix("benchpool: ") for line in lines if line.startswith("benchpool: ")]
