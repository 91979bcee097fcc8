"""Cause and description of a worker's end."""

from __future__ import annotations

from . import failure
from .cgroups import Bounds, Group
from .containment import out_of_memory_kills

GIB = 1024**3


class Seen:
    """Observations after the end of all processes of a worker.

    Attributes:
        by: Cause of the end: ``itself``, ``notice``, ``time-limit``.
        killed: The supervisor had to kill it. ``around``: the kernel killed a process out of
            memory anywhere on the machine; ``inside``: in the worker's own cgroup.
        memory: Its memory limit in bytes, or None. ``refused``: new processes were rejected
            because it had ``processes`` already.
    """

    __slots__ = ("around", "by", "inside", "killed", "memory", "processes", "refused")

    def __init__(
        self,
        by: str = "itself",
        killed: bool = False,
        around: bool = False,
        inside: bool = False,
        memory: int | None = None,
        refused: bool = False,
        processes: int | None = None,
    ) -> None:
        self.by = by
        self.killed = killed
        self.around = around
        self.inside = inside
        self.memory = memory
        self.refused = refused
        self.processes = processes


def look(group: Group | None, bounds: Bounds, kills_before: int, by: str, killed: bool) -> Seen:
    """Return the kernel's observations at the end of a worker with these limits.

    Args:
        kills_before: ``out_of_memory_kills`` before it began.
    """
    held = frozenset() if group is None else group.holds
    return Seen(
        by=by,
        killed=killed,
        around=out_of_memory_kills(group) > kills_before,
        inside=group is not None and group.out_of_memory_kills() > 0,
        memory=bounds.memory if "memory" in held else None,
        refused=group is not None and group.refused_processes() > 0,
        processes=bounds.processes,
    )


def last_of(output: bytes) -> bytes:
    """Return the part of a worker's output that ``words`` analyses."""
    return output[-failure.TAIL :]


def words(code: int, seen: Seen, tail: bytes = b"") -> tuple[str, str | None]:
    """Return the cause of a worker's end, and a sentence for its user.

    The caller adds the length of a time limit.

    Args:
        tail: The end of the worker's output.

    >>> by, text = words(137, Seen(around=True, inside=True, memory=8 << 30))
    >>> by, text
    ('out-of-memory', 'it ran out of memory: it needed more than the 8 GiB that it requested')
    >>> words(1, Seen(refused=True, processes=1000))[1].split(";")[0]
    'it reached its limit of 1,000 processes and threads'
    """
    if not seen.killed and seen.inside and code != 0 and seen.memory is not None:
        return "out-of-memory", _beyond_its_own(code, seen.memory, tail)
    if not seen.killed and seen.around and code == 137:
        ran = failure.in_cell(tail)
        return "out-of-memory", f"it was ended{ran} because the machine ran out of memory"
    if seen.by == "time-limit":
        return seen.by, f"it was ended{failure.in_cell(tail)} at its time limit"
    if seen.by != "itself" and seen.killed:
        return seen.by, "it did not end within its grace period and was killed"
    if code != 0 and seen.refused:
        return seen.by, (
            f"it reached its limit of {seen.processes:,} processes and threads; use fewer data "
            "workers, or set OMP_NUM_THREADS"
        )
    what = failure.sentence(code, tail) if seen.by == "itself" else None
    return seen.by, None if what is None else f"it {what}"


def _beyond_its_own(code: int, memory: int, tail: bytes) -> str:
    beyond = f"more than the {memory / GIB:g} GiB that it requested"
    if code == 137:
        return f"it ran out of memory{failure.in_cell(tail)}: it needed {beyond}"
    return f"it ran out of memory{failure.in_cell(tail)}: its processes needed {beyond}"
