"""Idle benches: the reports of notebook servers, and the state of their idle time.

A notebook server reports about every 20 seconds, and immediately when something changes. The answer
has the state of its bench, and may have a ``command``: to release the GPUs, or to write the note of
``phrases.idle_note`` to its folder before the server is stopped.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

Count = Annotated[int, Meta(ge=0, le=1_000_000_000)]


class BenchStep(StrEnum):
    """State of a bench: in use, unknown, or a step of the idle ladder."""

    USED = "used"
    CPU_PHASE = "cpu-phase"
    DOUBT = "doubt"
    IDLE = "idle"
    TOLD = "told"
    ASKED = "asked"
    DUE = "due"


class BenchAct(StrEnum):
    """Action on a bench that is due.

    ``release``: the GPUs are taken from the kernels, and the server keeps running without them.
    ``park``: its GPU is lent, and the GPU memory of its kernel is kept in host memory.
    """

    NONE = "none"
    STOP = "stop"
    RELEASE = "release"
    PARK = "park"


class BenchCommand(StrEnum):
    """Current command for a notebook server.

    ``release``: write the note, restart the kernels without GPUs, then call ``released_bench``.
    ``note``: write the note, and report immediately that it is ``noted``; the server is then
    stopped.
    """

    NONE = "none"
    RELEASE = "release"
    NOTE = "note"


class BenchActivity(Struct, frozen=True, forbid_unknown_fields=True):
    """Use of a notebook server, as the server reports it.

    Attributes:
        kernels: Number of running kernels.
        busy_kernels: Number of busy kernels.
        terminal_programs: Number of programs that run in terminals besides the shells; null where
            unknown.
        executions: Cells executed since the server started; it only increases.
        gives_up: Whether the server can take the GPUs from its kernels and keep running.
        noted: Whether the requested note is in the folder.
    """

    kernels: Count
    busy_kernels: Count
    executions: Count
    terminal_programs: Count | None = None
    gives_up: bool = False
    noted: bool = False


class BenchIdleness(Struct, frozen=True, kw_only=True):
    """State of a bench's idle time, and the next step.

    Attributes:
        idle_s: Idle time, in seconds.
        coverage: Share of the idle time for which data is known, 0 to 1.
        kept_until: End of the time for which its owner keeps it.
        keeps_left: Number of further keeps today.
        keep_s: Length of one keep, in seconds.
        exempt_until: End of its exemption from the rule for idle benches.
        tell_s: Idle time until the owner is notified, in seconds.
        ask_s: Idle time until the owner is asked, in seconds.
        act_s: Idle time until the bench is due, in seconds.
        act: Action when it is due; ``none`` where the site has not enabled one.
        parks: Whether the site parks benches. Parking is tried first and loses nothing.
        acts_at: When it is due if it stays idle; null where no action follows.
        next: Next step; null for none.
        next_at: Time of the next step; null for none.
        command: Current command for its notebook server.
        asked: Whether it is released at its owner's request instead of by the rule.
        stopping: Whether the Hub is asked to stop its server. Use ends this until the Hub accepts.
    """

    lease: str
    user: str
    server: str
    gpus: list[str]
    step: BenchStep
    idle_s: float
    coverage: float
    kept_until: datetime | None
    keeps_left: int
    keep_s: float
    exempt_until: datetime | None
    tell_s: float
    ask_s: float
    act_s: float
    act: BenchAct
    acts_at: datetime | None
    next: BenchStep | None
    next_at: datetime | None
    command: BenchCommand
    asked: bool = False
    parks: bool = False
    stopping: bool = False
