"""The bodies that the page sends (closed: no unknown keys), and what ``prepare`` answers."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct, field

from benchpool.cells import NotebookCell
from benchpool.cells.magics import Level
from benchpool.drafts import JobOptions
from benchpool_scheduler.contract import (
    Argument,
    FilePath,
    Name,
    Preview,
    Quota,
    SentCell,
)
from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.errors import InvalidInput, TooLarge

MAX_CELLS = 10_000


class LiveCell(Struct, frozen=True, forbid_unknown_fields=True):
    """A cell as the page holds it, saved or not."""

    id: Annotated[str, Meta(min_length=1, max_length=128)]
    cell_type: Annotated[str, Meta(max_length=20)]
    source: str
    execution_count: int | None = None
    selected: bool = False

    def as_cell(self) -> NotebookCell:
        """Return it for the analysis."""
        return NotebookCell(
            self.id, self.source, self.selected, self.cell_type, self.execution_count
        )


class SendRequest(JobSpec, frozen=True, forbid_unknown_fields=True, omit_defaults=False):
    """What the dialog asks about, and with ``key`` what it sends: a job spec, and what to run."""

    kind: Literal["cells", "notebook", "script"]
    path: FilePath
    cells: Annotated[list[LiveCell], Meta(max_length=MAX_CELLS)] | None = None
    kernel_name: Annotated[str, Meta(max_length=200)] | None = None
    args: Annotated[list[Argument], Meta(max_length=1000)] = field(default_factory=list)
    project: Name | None = None
    name: Name | None = None
    key: Annotated[str, Meta(min_length=1, max_length=200)] | None = None

    def options(self) -> JobOptions:
        """Return the answers beside the code."""
        return JobOptions(self.spec, self.name, self.project, key=self.key or "")


class PreparedCell(Struct, frozen=True):
    """What happens to a cell."""

    id: str
    index: int
    included: bool
    selected: bool
    why: str | None


class SaidProblem(Struct, frozen=True):
    """Something that would fail, or may."""

    level: Level
    text: str
    cell: str | None = None
    line: int | None = None


class LeftOutFile(Struct, frozen=True):
    """A file that does not travel, and why."""

    path: str
    why: str


class Files(Struct, frozen=True):
    """What of the folder travels."""

    count: int
    bytes: int
    left_out: list[LeftOutFile]


class Refusal(Struct, frozen=True):
    """Why the pool would not take it."""

    code: str
    message: str
    field: str | None
    numbers: dict[str, int | float | str | None]


class Checkpoint(Struct, frozen=True):
    """Whether the code seems to save its progress."""

    found: bool
    text: str


class Preparation(Struct, frozen=True):
    """What would be sent and what would become of it."""

    name: str
    cells: list[PreparedCell]
    problems: list[SaidProblem]
    interpreter: str | None
    working_dir: str | None
    output_dir: str | None
    files: Files | None
    command: str
    preview: Preview | None
    refusal: Refusal | None
    quota: Quota | None
    checkpoint: Checkpoint | None


class ResultFiles(Struct, frozen=True):
    """Where a job's results are, relative to the folder that the server serves."""

    notebook: str | None
    output_dir: str | None
    files: list[str]


class SentJob(Struct, frozen=True):
    """What a job was sent with, for the page.

    Attributes:
        path: The file in which it failed, else ``origin``, the file that it came from; relative to
            the folder that the server serves, and null where it is not there.
        send: As what it can be sent again from here; null for what it cannot.
        selected: Ids of the cells that were chosen, and ``cell`` that of the one that failed.
        line: The line that failed, of that cell or file.
        difference: How the file is otherwise now, as a diff; empty for not at all, null where that
            is not known.
    """

    path: str | None
    origin: str | None
    send: Literal["cells", "notebook", "script"] | None
    selected: list[str]
    cell: str | None
    line: int | None
    cells: list[SentCell]
    text: str | None
    cut: bool
    command: list[str]
    difference: str | None


class ExampleNotebook(Struct, frozen=True):
    """Where the example notebook lies, relative to the folder that the server serves."""

    notebook: str


def decode(body: bytes, limit: int) -> SendRequest:
    """Read a body.

    Raises:
        InvalidInput: It is not what it should be.
        TooLarge: It is longer than ``limit`` bytes.
    """
    if len(body) > limit:
        raise TooLarge(
            f"The notebook's code has {len(body) >> 20} MiB, the limit is {limit >> 20} MiB: move "
            "data out of the cells into files.",
            field="cells",
            numbers={"bytes": len(body), "limit": limit},
        )
    try:
        return msgspec.json.decode(body, type=SendRequest)
    except msgspec.DecodeError as bad:
        raise InvalidInput(f"The request cannot be read: {bad}.") from bad
