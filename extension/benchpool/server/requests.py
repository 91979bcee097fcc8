"""Request bodies of the page, which reject unknown keys, and the answer of ``prepare``."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, field

from benchpool.cells import CellChoice, NotebookCell
from benchpool.cells.left_out import Level
from benchpool.drafts import JobOptions
from benchpool.keep import Keep
from benchpool.kernel.answer import KernelAnswer, NameFacts, NotAsked
from benchpool.server.schedule_requests import DialogSchedule
from benchpool.server.sweep_requests import DialogSweep
from benchpool.value_offers import ValueOffer
from benchpool_scheduler.client.notebooks import (
    Metadata,
    check_metadata,
    lasting,
    lasting_of_cell,
    own_ids,
)
from benchpool_scheduler.contract import (
    Argument,
    FilePath,
    Name,
    Preview,
    Quota,
    SentCell,
)
from benchpool_scheduler.contract.parameters import ParameterName, WrittenValue
from benchpool_scheduler.contract.schedules import SchedulePreview
from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.contract.submission import Variables
from benchpool_scheduler.contract.sweeps import SweepPreview
from benchpool_scheduler.errors import InvalidInput, TooLarge

MAX_CELLS = 10_000
MAX_RUNS = 100


class CellRun(Struct, frozen=True, forbid_unknown_fields=True):
    """One run of a cell in the notebook's kernel, as the page saw it.

    Attributes:
        number: Its execution count; null if unknown.
        seconds: Duration in seconds; null if it has not ended, or if no duration was recorded.
        edited: The text has changed since.
    """

    number: int | None
    seconds: float | None
    failed: bool
    edited: bool = False


CellId = Annotated[str, Meta(min_length=1, max_length=128)]
KeptName = Annotated[str, Meta(min_length=1, max_length=200)]


class LiveCell(Struct, frozen=True, forbid_unknown_fields=True):
    """Cell in the page, saved or not."""

    id: CellId
    cell_type: Annotated[str, Meta(max_length=20)]
    source: str
    execution_count: int | None = None
    selected: bool = False
    tags: Annotated[list[Annotated[str, Meta(max_length=200)]], Meta(max_length=100)] = []
    attachments: dict[str, dict[str, Any]] = {}
    metadata: dict[str, Any] = {}
    runs: Annotated[list[CellRun], Meta(max_length=MAX_RUNS)] = field(default_factory=list)
    left_out: bool = False
    ticked: bool = False

    def as_cell(self) -> NotebookCell:
        """Return the cell for the analysis."""
        last = self.runs[-1] if self.runs else None
        return NotebookCell(
            self.id,
            self.source,
            self.selected,
            self.cell_type,
            self.execution_count,
            tuple(self.tags),
            self.attachments,
            left_out=self.left_out,
            failed=last is not None and last.failed and not last.edited,
            runs=tuple(each.number for each in self.runs if each.number is not None),
            ticked=self.ticked,
            metadata=lasting_of_cell(self.metadata),
        )


class SendRequest(JobSpec, frozen=True, forbid_unknown_fields=True, omit_defaults=False):
    """Request of the dialog, for a preview or with ``key`` a submission: a job spec and its code.

    Attributes:
        metadata: Metadata of the open notebook.
        parameters: Values as typed. Several values of a name make a sweep over it.
        deleted_runs: Execution counts of cells that are no longer in the notebook.
        ticked: Cells that the dialog showed as included.
    """

    kind: Literal["cells", "notebook", "script"]
    path: FilePath
    cells: Annotated[list[LiveCell], Meta(max_length=MAX_CELLS)] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    kernel_name: Annotated[str, Meta(max_length=200)] | None = None
    kernel_id: Annotated[str, Meta(max_length=200)] | None = None
    deleted_runs: Annotated[list[int], Meta(max_length=1000)] = field(default_factory=list)
    ticked: Annotated[list[CellId], Meta(max_length=MAX_CELLS)] | None = None
    args: Annotated[list[Argument], Meta(max_length=1000)] = field(default_factory=list)
    project: Name | None = None
    name: Name | None = None
    env: Variables = field(default_factory=dict)
    parameters: dict[ParameterName, Annotated[str, Meta(max_length=65536)]] = field(
        default_factory=dict
    )
    keep: Annotated[list[KeptName], Meta(max_length=1000)] | None = None
    pickle: bool = False
    send: Annotated[list[KeptName], Meta(max_length=1000)] | None = None
    sweep: DialogSweep | None = None
    schedule: DialogSchedule | None = None
    key: Annotated[str, Meta(min_length=1, max_length=200)] | None = None

    def notebook_cells(self) -> list[NotebookCell]:
        """Return the cells of an open notebook for the analysis, with unique IDs."""
        cells = [each.as_cell() for each in self.cells or ()]
        own = own_ids(cell.id for cell in cells)
        return [replace(cell, id=id_) for cell, id_ in zip(cells, own, strict=True)]

    def notebook_metadata(self) -> Metadata:
        """Return the metadata of an open notebook to send."""
        return lasting(self.metadata)

    def seconds(self) -> dict[int, float]:
        """Return the known durations of the cells' last runs in seconds, by position."""
        found = {}
        for at, cell in enumerate(self.cells or ()):
            took = [run.seconds for run in cell.runs if run.seconds and not run.failed]
            found[at] = took[-1] if took else 0.0
        return found

    def options(self) -> JobOptions:
        """Return the choices other than the code."""
        return JobOptions(
            self.spec,
            self.name,
            self.project,
            env=self.env,
            key=self.key or "",
            keep=Keep.asked(self.keep, self.pickle),
            parameters={name: WrittenValue(text) for name, text in self.parameters.items()},
        )


class OfferedParameter(Struct, frozen=True):
    """Parameter shown in the dialog.

    Attributes:
        type: One of bool, int, float, str, list, dict and any.
        default: Default as written in the code.
        help: The comment after it.
        tagged: It is in the cell with the tag ``parameters``; otherwise it is a constant.
    """

    name: str
    type: str
    default: str
    help: str
    cell: str
    tagged: bool


class GivenName(Struct, frozen=True):
    """Name that a cell provides, and the numbers of the cells that need it, from 1."""

    name: str
    to: list[int]


class PreparedCell(Struct, frozen=True):
    """Decision for a cell, and what would be missing without it."""

    id: str
    index: int
    included: bool
    selected: bool
    why: str | None
    gives: list[GivenName]

    @classmethod
    def of(cls, choice: CellChoice) -> PreparedCell:
        """Return the dialog's data for a cell."""
        gives = [GivenName(name, [at + 1 for at in to]) for name, to in choice.gives]
        return cls(choice.id, choice.index, choice.included, choice.selected, choice.why, gives)


class ReportedProblem(Struct, frozen=True):
    """Error, warning or information (``info``) for the dialog."""

    level: Level
    text: str
    cell: str | None = None
    line: int | None = None


class LeftOutFile(Struct, frozen=True):
    """File that is not sent, with the reason."""

    path: str
    why: str


class Files(Struct, frozen=True):
    """Files of the folder that are sent."""

    count: int
    bytes: int
    left_out: list[LeftOutFile]


class Refusal(Struct, frozen=True):
    """Reason why the pool would reject the job."""

    code: str
    message: str
    field: str | None
    numbers: dict[str, int | float | str | None]


class KernelReport(Struct, frozen=True):
    """Whether the kernel was queried, or why not, and what the names of the cells hold in it."""

    asked: bool
    text: str
    names: dict[str, NameFacts]

    @classmethod
    def of(cls, answer: KernelAnswer | NotAsked) -> KernelReport:
        """Return the dialog's data for an answer."""
        if isinstance(answer, NotAsked):
            return cls(False, answer.text, {})
        return cls(True, "", answer.names)


class Checkpoint(Struct, frozen=True):
    """Whether the code seems to save its progress; ``lines`` suggest code that does."""

    found: bool
    text: str
    lines: str = ""


class OfferedValue(Struct, frozen=True):
    """Names of the kernel whose values may be sent instead of running the cells that made them.

    Attributes:
        text: Time to make them again and to send them.
        chosen: They are in the choice with the least total time.
        obstacle: Reason why they cannot be sent; empty if they can.
    """

    names: list[str]
    text: str
    chosen: bool
    obstacle: str = ""

    @classmethod
    def of(cls, offer: ValueOffer) -> OfferedValue:
        """Return the dialog's data for an offer."""
        return cls(list(offer.names), offer.text, offer.chosen, offer.obstacle)


class Preparation(Struct, frozen=True):
    """Preview of a submission.

    Attributes:
        left: Names whose values are returned by default.
        offers: Names whose values may be sent.
        sweep: Trials and cost of a sweep, if one is requested.
        swept: Values of the swept names in words, as far as they are valid.
        schedule: Next times of a schedule, if one is requested.
    """

    name: str
    cells: list[PreparedCell]
    problems: list[ReportedProblem]
    interpreter: str | None
    working_dir: str | None
    output_dir: str | None
    files: Files | None
    command: str
    preview: Preview | None
    refusal: Refusal | None
    quota: Quota | None
    checkpoint: Checkpoint | None
    kernel: KernelReport | None
    parameters: list[OfferedParameter] = []
    left: list[str] = []
    offers: list[OfferedValue] = []
    sweep: SweepPreview | None = None
    swept: dict[str, str] = {}
    schedule: SchedulePreview | None = None


class KeptValue(Struct, frozen=True):
    """Value that a job stored. ``line`` loads it in a notebook that has imported ``benchpool``."""

    name: str
    text: str
    line: str


class ResultFiles(Struct, frozen=True):
    """Location of a job's results, relative to the folder that the server serves.

    ``left_out`` gives the reason for each requested name without a value.
    """

    notebook: str | None
    output_dir: str | None
    files: list[str]
    values: list[KeptValue] = []
    left_out: list[str] = []


class SentJob(Struct, frozen=True):
    """Code that a job was submitted with, for the page.

    Attributes:
        path: File in which it failed, else ``origin``, the file it came from. Relative to the
            folder that the server serves; null if the file is not there.
        send: Form in which it can be submitted again from here; null if it cannot.
        selected: IDs of the cells that were chosen. ``cell``: ID of the cell that failed.
        line: Line that failed, in that cell or file.
        difference: Changes of the file since, as a diff; empty if unchanged, null if unknown.
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
    """Location of the example notebook, relative to the folder that the server serves."""

    notebook: str


def decode(body: bytes, limit: int) -> SendRequest:
    """Return the request in a body.

    Raises:
        InvalidInput: The body is not valid.
        TooLarge: It is longer than ``limit`` bytes, or the notebook's metadata are too large.
    """
    if len(body) > limit:
        raise TooLarge(
            f"The notebook's code has {len(body) >> 20} MiB, the limit is {limit >> 20} MiB. Move "
            "data out of the cells into files.",
            field="cells",
            numbers={"bytes": len(body), "limit": limit},
        )
    try:
        request = msgspec.json.decode(body, type=SendRequest)
    except (msgspec.DecodeError, RecursionError) as bad:
        raise InvalidInput(f"The request cannot be read: {bad}.") from bad
    cells = (lasting_of_cell(each.metadata) for each in request.cells or ())
    check_metadata(request.notebook_metadata(), cells)
    return request
