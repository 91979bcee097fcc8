"""State of the bench, as shown to a page."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from benchpool_scheduler.contract.idle_benches import BenchIdleness


class GivenBack(Struct, frozen=True):
    """Release of this server's GPUs while the server continues.

    Attributes:
        asked: A user requested it; otherwise the bench had been idle for ``idle_s`` seconds.
        kernels: Number of kernels restarted without GPUs; they lost their variables.
        note: File about it in the folder that the server serves; null if it could not be written.
        done: The scheduler has received the GPUs.
    """

    at: datetime
    gpus: int
    asked: bool
    idle_s: float
    kernels: int
    note: str | None
    done: bool


class BenchNow(Struct, frozen=True):
    """Activity of this server's kernels and terminals, and the state of its GPUs.

    Attributes:
        executions: Cells run since the server started.
        terminal_programs: Null if the machine does not provide it.
        gives_up: The server can continue without its GPUs; otherwise releasing them stops it.
        idleness: Null if the server has no GPUs, or the scheduler did not answer.
        given_back: Null until the GPUs were released.
    """

    kernels: int
    busy_kernels: int
    executions: int
    terminal_programs: int | None
    gives_up: bool
    idleness: BenchIdleness | None
    given_back: GivenBack | None
