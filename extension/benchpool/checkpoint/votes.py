"""One answer to "should I stop?" for all ranks of a job.

A rank is a process that a launcher has given its ``RANK``. Without one, each worker is a rank.
Ranks that stop at different steps wait for each other forever. Four cases:

- one process: its own notice;
- a process group of ``torch.distributed``: any rank that was asked to stop stops all (a maximum
  over the ranks at each call, so all must call equally often);
- several processes without one: rank 0 decides. It writes "stop at call k + 1" into the shared
  folder during its call k. Ranks that meet at least once between two calls, as every data-parallel
  step does, cannot have passed call k + 1 by then, so all stop there. Ranks that never
  meet stop as soon as they see it;
- the same without a shared folder (pods without a common volume): rank 0 stops as soon as it is
  asked, since its save is the one that counts. The other ranks stop ``BEHIND_CALLS`` calls and
  ``BEHIND_S`` seconds later, if they have not failed before for lack of rank 0.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from benchpool.checkpoint import notices

SHARED = "BENCHPOOL_CHECKPOINT_SHARED"
BEHIND_CALLS = 2
BEHIND_S = 5.0
"""Delay of ranks that cannot see rank 0's stop: ``BEHIND_CALLS`` calls and this many seconds."""

stopping = False
"""True after this process was answered that it should stop."""

_calls = 0
_requested_at: tuple[int, float] | None = None


def should_stop() -> bool:
    """Return whether to save and stop now. Cheap enough for each step.

    All ranks get the same answer. Call it in the main thread of every rank, equally often. From the
    first call on, SIGTERM no longer ends the process (unless the program handles it), so stop when
    this returns True.
    """
    notices.asked()
    return stop_or_save(due=False)[0]


def stop_or_save(due: bool) -> tuple[bool, bool]:
    """Return whether to stop now, and whether to save now; the same answers on all ranks.

    Args:
        due: A save is due by this rank's clock. With several ranks, rank 0's value counts.
    """
    global stopping, _calls
    _calls += 1
    requested = notices.stop_requested()
    group, folder = _process_group(), notices.directory()
    if group is not None:
        requested, due = _any_rank(group, requested, due and rank() == 0)
    elif world_size() > 1 and apart():
        # Without a shared folder the ranks cannot save the same step.
        requested, due = requested and (rank() == 0 or _is_behind(_calls)), False
    elif world_size() > 1 and folder is not None:
        requested = _chief_decides(folder, "stop", requested, _calls, again=False) is not None
        due = _chief_decides(folder, "save", due, _calls, again=True) == _calls
    stopping = stopping or requested
    return stopping, due


def world_size() -> int:
    """Return the number of ranks of the job."""
    group = _process_group()
    if group is not None:
        return int(group.get_world_size())
    return _number("WORLD_SIZE" if "RANK" in os.environ else "NNODES", 1)


def rank() -> int:
    """Return the number of this rank."""
    group = _process_group()
    if group is not None:
        return int(group.get_rank())
    return _number("RANK" if "RANK" in os.environ else "NODE_RANK", 0)


def apart() -> bool:
    """Return whether workers have separate checkpoint folders, joined for the next attempt."""
    return os.environ.get(SHARED) == "no"


def _number(name: str, default: int) -> int:
    value = os.environ.get(name, "")
    return int(value) if value.isdecimal() else default


def _process_group() -> Any:
    # Only a program that imported torch itself has a group; importing it here would take seconds.
    group = sys.modules.get("torch.distributed")
    usable = group is not None and group.is_available() and group.is_initialized()
    return group if usable and group.get_world_size() > 1 else None  # type: ignore[union-attr]


def _any_rank(group: Any, *answers: bool) -> tuple[bool, ...]:
    torch: Any = sys.modules["torch"]
    device = "cuda" if group.get_backend() == "nccl" else "cpu"
    flags = torch.tensor([int(each) for each in answers], device=device)
    group.all_reduce(flags, op=group.ReduceOp.MAX)
    return tuple(bool(each) for each in flags.tolist())


def _is_behind(call: int) -> bool:
    global _requested_at
    first, at = _requested_at = _requested_at or (call, time.monotonic())
    return call - first >= BEHIND_CALLS and time.monotonic() - at >= BEHIND_S


def _chief_decides(folder: Path, what: str, wanted: bool, call: int, *, again: bool) -> int | None:
    """Return the call that rank 0 has chosen, once this rank has reached it, else None."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f".{what}-{_number('BENCHPOOL_ATTEMPT', 1)}"
    at = _read(path)
    if wanted and rank() == 0 and (at is None or (again and at < call)):
        at = call + 1
        aside = path.with_name(f"{path.name}.{os.getpid()}")
        aside.write_text(str(at))
        aside.replace(path)
    return at if at is not None and call >= at else None


def _read(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (FileNotFoundError, ValueError):
        return None
