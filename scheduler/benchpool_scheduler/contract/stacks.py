"""What a job is doing now: the stacks of its workers side by side, its GPUs, its last lines."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

Sign = Annotated[str, Meta(max_length=300)]

STACKS_BYTES = 1 << 20
"""What one worker may say of its stacks."""


class ThreadStack(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A thread: its name, and its frames as ``function (file:line)``, the innermost first."""

    name: Sign
    frames: Annotated[list[Sign], Meta(max_length=60)]


class ProcessStacks(Struct, frozen=True, forbid_unknown_fields=True):
    """A Python process; ``by`` is what read it."""

    pid: int
    command: Sign
    by: Literal["py-spy", "faulthandler"]
    threads: Annotated[list[ThreadStack], Meta(max_length=64)]


class WorkerStacks(Struct, frozen=True, forbid_unknown_fields=True):
    """The Python processes of one worker; ``why`` is a sentence where there are none."""

    processes: Annotated[list[ProcessStacks], Meta(max_length=64)] = []
    why: Annotated[str, Meta(max_length=600)] = ""


class StackGroup(Struct, frozen=True):
    """Workers that do the same: ``who`` says which, in words; the processes are of the first."""

    workers: list[int]
    who: str
    processes: list[ProcessStacks]
    why: str = ""


class PeekQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Which look: one that is taken now, or that which was kept when the job hung last."""

    hanging: Annotated[
        bool, Meta(description="Not now, but when it was found to hang the last time.")
    ] = False


class Peek(Struct, frozen=True):
    """Answer of ``peek``.

    ``text`` says it in a sentence. ``gpus`` has a line for each GPU that is measured, ``log`` the
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
        """Yield all but the first sentence, as lines of text."""
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
