"""What a page is told of the bench below its server."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from benchpool_scheduler.contract.idle_benches import BenchIdleness


class GivenBack(Struct, frozen=True):
    """That the GPUs of this server were given back while it went on.

    Attributes:
        asked: Somebody wanted it, else it had been idle for ``idle_s``.
        kernels: That were started anew without GPUs, and lost their variables.
        note: File that says so, in the folder that the server serves; null where none could be
            written.
        done: The scheduler has the GPUs back.
    """

    at: datetime
    gpus: int
    asked: bool
    idle_s: float
    kernels: int
    note: str | None
    done: bool


class BenchNow(Struct, frozen=True):
    """What kernels and terminals of this server do, and what becomes of its GPUs.

    Attributes:
        executions: Cells run since the server started.
        terminal_programs: Null where the machine does not tell.
        gives_up: The server can go on without its GPUs; else giving them back stops it.
        idleness: Null where the server has no GPUs, or the scheduler did not answer.
        given_back: Null while they were not.
    """

    kernels: int
    busy_kernels: int
    executions: int
    terminal_programs: int | None
    gives_up: bool
    idleness: BenchIdleness | None
    given_back: GivenBack | None
