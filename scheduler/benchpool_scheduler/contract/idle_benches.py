"""Idle benches: what notebook servers report of themselves, and what is said of their idle time.

A notebook server reports about every 20 seconds, and at once when something changes. The answer
says where its bench stands, and may have a ``command``: to give the GPUs back, or to leave the note
of ``phrases.idle_note`` in its folder, before the server is stopped.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

Count = Annotated[int, Meta(ge=0, le=1_000_000_000)]


class BenchStep(StrEnum):
    """Where a bench stands: in use, not known, or on a rung of the ladder."""

    USED = "used"
    CPU_PHASE = "cpu-phase"
    DOUBT = "doubt"
    IDLE = "idle"
    TOLD = "told"
    ASKED = "asked"
    DUE = "due"


class BenchAct(StrEnum):
    """What happens to a bench that is due.

    ``release``: the GPUs are taken from the kernels, and the server goes on without them.
    ``park``: its GPU is lent, and what its kernel has there waits in the machine's memory.
    """

    NONE = "none"
    STOP = "stop"
    RELEASE = "release"
    PARK = "park"


class BenchCommand(StrEnum):
    """What a notebook server is told to do now.

    ``release``: write the note, restart the kernels without GPUs, then ``released_bench``.
    ``note``: write the note, and report at once that it is ``noted``; the server is then stopped.
    """

    NONE = "none"
    RELEASE = "release"
    NOTE = "note"


class BenchActivity(Struct, frozen=True, forbid_unknown_fields=True):
    """What a notebook server knows of its own use.

    Attributes:
        kernels: That run, ``busy_kernels`` of them busy.
        terminal_programs: That run in terminals besides the shells; null where that is not known.
        executions: Cells executed since the server started; it only rises.
        gives_up: The server can take the GPUs from its kernels and go on.
        noted: The note that was commanded lies in the folder.
    """

    kernels: Count
    busy_kernels: Count
    executions: Count
    terminal_programs: Count | None = None
    gives_up: bool = False
    noted: bool = False


class BenchIdleness(Struct, frozen=True, kw_only=True):
    """Where a bench stands, and what comes next.

    Attributes:
        idle_s: For how long it has been idle, of which ``coverage`` (0 to 1) was known.
        kept_until: Its owner keeps it until then; ``keeps_left`` more times today, each time for
            ``keep_s``.
        exempt_until: No rule for idle benches meets it until then.
        tell_s: Seconds of idleness until it is said, ``ask_s`` until the owner is asked, ``act_s``
            until it is due.
        act: What happens when it is due; ``none`` where the site has not switched that on.
        parks: The site parks benches: that is tried first, and then nothing is lost.
        acts_at: When it is due, if it stays idle; null where nothing will happen.
        next: The next step, at ``next_at``; null where none comes.
        command: What its notebook server does now.
        asked: It is given back because its owner wants it, not by the rule.
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
