"""A shell inside a running worker: opened, typed into, read, all by plain requests."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from benchpool_scheduler.contract.logs import WorkerNumber

ShellId = Annotated[str, Meta(pattern="^[0-9a-f]{32}$", description="The shell, as it was opened.")]
Size = Annotated[int, Meta(ge=1, le=1000)]

TYPED_BYTES = 16 * 1024
"""What is typed with one request."""
OPENS_S = 20.0
"""The agent of a worker on a cluster may take so long to open a shell, seconds."""
WAIT_S = 20.0
"""A question for output is held open at most so long, seconds."""


class ShellOpening(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``open_shell``: in which worker, and the terminal that it is shown in."""

    worker: Annotated[WorkerNumber, Meta(description="In which worker.")] = 0
    rows: Size = 24
    columns: Size = 80
    term: Annotated[str, Meta(max_length=64, pattern=r"^[A-Za-z0-9.+_-]+$(?!\n)")] = "xterm"


class Shell(Struct, frozen=True):
    """An open shell; whoever opened it types and reads by its ``shell``."""

    shell: str
    job: str
    attempt: int
    worker: int


class ShellInput(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``type_into_shell``.

    ``number`` is one more each time: what comes again is not typed twice. ``rows`` and ``columns``
    are set where the terminal has another size now; ``hang_up`` ends the shell.
    """

    shell: ShellId
    number: Annotated[int, Meta(ge=1, le=2**53)]
    data: Annotated[bytes, Meta(max_length=TYPED_BYTES)] = b""
    rows: Size | None = None
    columns: Size | None = None
    hang_up: bool = False


class ShellQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """What a shell printed from ``offset`` on; what lies before it is forgotten."""

    shell: ShellId
    offset: Annotated[int, Meta(ge=0, le=2**53)] = 0


class ShellOutput(Struct, frozen=True):
    """What a shell printed; after ``ended`` nothing more comes, and ``text`` says why."""

    data: bytes
    next: int
    ended: bool = False
    exit_code: int | None = None
    text: str = ""
