"""One answer to "should I stop?" for all ranks of a job.

Ranks that stop at different steps wait for each other for ever. Three cases:

- one process: its own notice;
- a process group of ``torch.distributed``: any rank that was told stops all (a maximum over the
  ranks at each call, so all must call equally often);
- several processes without one: rank 0 decides. It writes "stop at call k + 1" into the shared
  folder during its call k. Ranks that meet at least once between two calls, as every data-parallel
  step does, cannot have passed call k + 1 by then, so all stop there. Ranks that never
  meet stop as soon as they see it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from benchpool.checkpoint import notices

stopping = False
"""True once this process was answered that it should stop."""

_calls = 0


def should_stop() -> bool:
    """Say whether to save and stop now; the same answer on all ranks. Cheap enough for each step.

    Call it in the main thread of every rank, equally often. From the first call on, SIGTERM no
    longer ends the process by itself (unless the program handles it): stop when this says so.
    """
    global stopping, _calls
    _calls += 1
    notices.asked()
    told = notices.told()
    group, folder = _process_group(), notices.directory()
    if group is not None:
        told = _any_rank(group, told)
    elif world_size() > 1 and folder is not None:
        told = _chief_decides(folder, told, _calls)
    stopping = stopping or told
    return stopping


def world_size() -> int:
    """Return how many processes the job has, as the environment says."""
    return _number("WORLD_SIZE", 1)


def rank() -> int:
    """Return which of them this is."""
    group = _process_group()
    return int(group.get_rank()) if group is not None else _number("RANK", 0)


def _number(name: str, default: int) -> int:
    said = os.environ.get(name, "")
    return int(said) if said.isdecimal() else default


def _process_group() -> Any:
    # Only a program that imported torch itself has a group; importing it here would take seconds.
    group = sys.modules.get("torch.distributed")
    usable = group is not None and group.is_available() and group.is_initialized()
    return group if usable and group.get_world_size() > 1 else None  # type: ignore[union-attr]


def _any_rank(group: Any, told: bool) -> bool:
    torch: Any = sys.modules["torch"]
    device = "cuda" if group.get_backend() == "nccl" else "cpu"
    flag = torch.tensor([int(told)], device=device)
    group.all_reduce(flag, op=group.ReduceOp.MAX)
    return bool(flag.item())


def _chief_decides(folder: Path, told: bool, call: int) -> bool:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f".stop-{_number('BENCHPOOL_ATTEMPT', 1)}"
    at = _read(path)
    if at is None and told and rank() == 0:
        at = call + 1
        aside = path.with_name(f"{path.name}.{os.getpid()}")
        aside.write_text(str(at))
        aside.replace(path)
    return at is not None and call >= at


def _read(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (FileNotFoundError, ValueError):
        return None
