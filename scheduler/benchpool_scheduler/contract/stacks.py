"""Current activity of a job: the stacks of its workers, its GPUs, its last log lines."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

Sign = Annotated[str, Meta(max_length=300)]

STACKS_BYTES = 1 << 20
"""Maximum size of the stacks of one worker, in bytes."""


class ThreadStack(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Thread with its name, and its frames as ``function (file:line)``, innermost first."""

    name: Sign
    frames: Annotated[list[Sign], Meta(max_length=60)]


class ProcessStacks(Struct, frozen=True, forbid_unknown_fields=True):
    """Stacks of a Python process; ``by`` is the tool that read them."""

    pid: int
    command: Sign
    by: Literal["py-spy", "faulthandler"]
    threads: Annotated[list[ThreadStack], Meta(max_length=64)]


class WorkerStacks(Struct, frozen=True, forbid_unknown_fields=True):
    """Stacks of the Python processes of one worker; ``why`` is a sentence if there are none."""

    processes: Annotated[list[ProcessStacks], Meta(max_length=64)] = []
    why: Annotated[str, Meta(max_length=600)] = ""


class StackGroup(Struct, frozen=True):
    """Workers with equal stacks, named by ``who``. The processes are those of the first."""

    workers: list[int]
    who: str
    processes: list[ProcessStacks]
    why: str = ""


class PeekQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Snapshot to return: a new one, or the one stored when the job last hung."""

    hanging: Annotated[
        bool, Meta(description="Show the snapshot from when it last hung, not a new one.")
    ] = False


class Peek(Struct, frozen=True):
    """Answer of ``peek``.

    ``text`` is a summary in a sentence. ``gpus`` has a line for each measured GPU. ``log`` has the
    last lines of worker 0.
    """

    job: str
    attempt: int
    at: datetime
    text: str
    groups: list[StackGroup]
    gpus: list[str]
    log: list[str]

    def lines(self) -> Iterator[str]:
        """Yield the details below the summary, as lines of text."""
        for group in self.groups:
            yield from ("", f"{group.who}:")
            for process in group.processes:
                yield f"  {process.pid} {process.command} ({process.by})"
                for thread in process.threads:
                    yield f"    {thread.name}"
                    yield from (f"      {frame}" for frame in thread.frames)
            if group.why:
                yield f"  {group.why}"
        if self.gpus:
            yield from ("", *self.gpus)
        if self.log:
            yield from ("", "Last lines of worker 0:", *(f"  {line}" for line in self.log))
