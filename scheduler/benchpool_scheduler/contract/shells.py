"""Shell inside a running worker: opening, input and output by plain requests."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from benchpool_scheduler.contract.logs import WorkerNumber

ShellId = Annotated[str, Meta(pattern="^[0-9a-f]{32}$", description="Id of the open shell.")]
Size = Annotated[int, Meta(ge=1, le=1000)]

TYPED_BYTES = 16 * 1024
"""Maximum input of one request, in bytes."""
OPENS_S = 20.0
"""Timeout for a worker's agent on a cluster to open a shell, in seconds."""
WAIT_S = 20.0
"""Maximum time that a request for output is held open, in seconds."""


class ShellOpening(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``open_shell``: the worker, and the terminal that shows the shell."""

    worker: Annotated[WorkerNumber, Meta(description="Worker of the shell.")] = 0
    rows: Size = 24
    columns: Size = 80
    term: Annotated[str, Meta(max_length=64, pattern=r"^[A-Za-z0-9.+_-]+$(?!\n)")] = "xterm"


class Shell(Struct, frozen=True):
    """Open shell. Its owner types and reads by the id ``shell``."""

    shell: str
    job: str
    attempt: int
    worker: int


class ShellInput(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``type_into_shell``.

    ``number`` increases by one with each request, so that a repeated request is not typed twice.
    ``rows`` and ``columns`` are set if the terminal has a new size. ``hang_up`` ends the shell.
    """

    shell: ShellId
    number: Annotated[int, Meta(ge=1, le=2**53)]
    data: Annotated[bytes, Meta(max_length=TYPED_BYTES)] = b""
    rows: Size | None = None
    columns: Size | None = None
    hang_up: bool = False


class ShellQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Output of a shell from ``offset`` on. Earlier output is dropped."""

    shell: ShellId
    offset: Annotated[int, Meta(ge=0, le=2**53)] = 0


class ShellOutput(Struct, frozen=True):
    """Output of a shell. After ``ended`` nothing more comes, and ``text`` is the cause."""

    data: bytes
    next: int
    ended: bool = False
    exit_code: int | None = None
    text: str = ""
