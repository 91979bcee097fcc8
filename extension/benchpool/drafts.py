"""Drafts of jobs: submissions and their contents, made from cells, a notebook or a script.

The button, the magic and the function all use this module, so that they create the same job with
the same messages.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, Literal

from msgspec import structs

from benchpool import left_out_problems, own_modules
from benchpool.cells import CellChoice, CellSelection, KnownBeside, NotebookCell, Problem, choose
from benchpool.keep import Keep
from benchpool.kernel_environment import KernelEnvironment
from benchpool.live_values import LiveValues
from benchpool_scheduler.client import notebooks, snapshot
from benchpool_scheduler.client.results import RESULTS
from benchpool_scheduler.contract import (
    Entry,
    JobSubmission,
    NotebookEntry,
    ScriptEntry,
    SnapshotFile,
    Source,
)
from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.errors import InvalidInput

NOTHING_SEEN = KnownBeside()
NO_METADATA: notebooks.Metadata = {}
HERE = KernelEnvironment()
"""Environment of a single machine, where jobs see all files."""
Kind = Literal["cells", "notebook", "script", "python", "magic", "function"]


@dataclass(frozen=True, slots=True)
class JobOptions:
    """Choices of the user besides the code: the job's resources and its project.

    ``key`` makes a retry of the same submission harmless. ``keep`` selects the values to return,
    and ``values`` are the values that are sent.
    """

    spec: JobSpec = field(default_factory=JobSpec)
    name: str | None = None
    project: str | None = None
    image: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    key: str = ""
    keep: Keep = field(default_factory=Keep)
    parameters: Mapping[str, object] = field(default_factory=dict)
    values: LiveValues = field(default_factory=LiveValues)

    @classmethod
    def of(cls, fields: Mapping[str, Any], key: str) -> JobOptions:
        """Return the choices given by these fields of a submission."""
        names = JobSpec.__struct_fields__
        asked = {name: value for name, value in fields.items() if name in names}
        others = {name: value for name, value in fields.items() if name not in names}
        return cls(JobSpec(**asked), **others, key=key)


@dataclass(frozen=True, slots=True)
class Draft:
    """Submission, the contents that it needs by hash, and the problems to report.

    ``parameters`` are those of its cells, ``given`` their values. ``values`` are sent with it.
    """

    submission: JobSubmission
    contents: Mapping[str, Path | bytes]
    problems: tuple[Problem, ...] = ()
    selection: CellSelection | None = None
    parameters: tuple[notebooks.NotebookParameter, ...] = ()
    given: Mapping[str, object] = field(default_factory=dict)
    keep: Keep = field(default_factory=Keep)

    values: LiveValues = field(default_factory=LiveValues)

    def check(self) -> Draft:
        """Return this draft if it has no known error.

        Raises:
            InvalidInput: The first error, with its cell's number and line.
        """
        for each in self.problems:
            if each.level == "error":
                raise InvalidInput(f"{self.place(each)}{sentence(each.text)}", field="cells")
        return self

    def place(self, problem: Problem) -> str:
        """Return the position of a problem as the start of a sentence: ``Cell 3, line 2: ``."""
        cells = self.selection.cells if self.selection else ()
        number = next((each.index + 1 for each in cells if each.id == problem.cell), None)
        cell = "" if number is None else f"cell {number}"
        source = self.submission.source
        if source is not None and source.kind in {"magic", "function"}:
            # A kernel has no cells, only the numbers of the code it ran.
            cell = (problem.cell or "").replace("in-", "In [") + "]"
            cell = cell if cell.startswith("In [") else ""
        line = f"line {problem.line}" if problem.line else ""
        where = ", ".join(filter(None, [cell, line]))
        return f"{where[:1].upper()}{where[1:]}: " if where else ""


def of_cells(
    cells: Sequence[NotebookCell],
    options: JobOptions,
    *,
    kind: Kind,
    folder: Path,
    interpreter: str,
    path: str | None = None,
    whole: bool = False,
    here: KernelEnvironment = HERE,
    to_send: bool = True,
    seen: KnownBeside = NOTHING_SEEN,
    metadata: notebooks.Metadata = NO_METADATA,
) -> Draft:
    """Return a draft of the selected cells and those they need, or with ``whole`` of all cells.

    The job runs in ``folder`` with ``interpreter``. If the job does not see that folder, it runs in
    a copy of its files, which are in the draft if ``to_send`` is true. ``path`` is the notebook's,
    for the name. ``metadata`` is the notebook's metadata to send.
    """
    selection = choose(cells, frozenset(options.values.names), seen)
    by_id = {cell.id: cell for cell in cells}
    prose = _prose(selection, by_id, whole=whole)
    job_cells = [
        _job_cell(each, by_id[each.id])
        for each in selection.cells
        if each.included or each.id in prose
    ]
    what = PurePath(path).name if path and whole else "The selection"
    made = notebooks.with_values(job_cells, options.parameters, what)
    draft = of_chosen(
        made.cells,
        selection,
        dataclasses.replace(options, parameters=made.values),
        name=name_of(path or "cells"),
        kind=kind,
        sent=[] if whole else [each.id for each in selection.cells if each.selected],
        folder=folder,
        interpreter=interpreter,
        path=path,
        here=here,
        to_send=to_send,
        metadata=metadata,
    )
    has = notebooks.declared(job_cells)
    return dataclasses.replace(draft, parameters=has, given=options.parameters)


def of_chosen(
    job_cells: Sequence[notebooks.JobCell],
    selection: CellSelection,
    options: JobOptions,
    *,
    name: str,
    kind: Kind,
    sent: list[str],
    folder: Path,
    interpreter: str,
    path: str | None = None,
    here: KernelEnvironment = HERE,
    to_send: bool = True,
    metadata: notebooks.Metadata = NO_METADATA,
) -> Draft:
    """Return a draft of chosen cells; the second half of ``of_cells``.

    Args:
        name: Name of the job if the user gave none.
        options: Choices whose parameters the cells already contain.
        sent: IDs of the cells that the user selected.
    """
    files = snapshot.take(folder) if here.files_travel and to_send else None
    name, left = options.name or name, selection.left
    modules = own_modules.of_cells(job_cells, folder) if to_send and files is None else {}
    notebook = _notebook(
        job_cells, options, folder=folder, name=name, path=path, left=left, modules=modules,
        metadata=metadata,
    )  # fmt: skip
    submission = _submission(
        notebook.entry,
        options,
        name=name,
        folder=folder,
        interpreter=interpreter,
        source=Source(kind=kind, path=path, cells=sent),
        working_dir=str(folder),
        files=[*(files.files if files else []), *options.values.files],
        here=here,
    )
    contents: dict[str, Path | bytes] = {**(files.contents if files else {})}
    contents |= options.values.contents
    contents[notebook.entry.notebook] = notebook.text
    keep, values = options.keep, options.values
    problems = (*selection.problems, *left_out_problems.of(files))
    return Draft(submission, contents, problems, selection, keep=keep, values=values)


def _job_cell(choice: CellChoice, cell: NotebookCell) -> notebooks.JobCell:
    return notebooks.JobCell(
        cell.id,
        choice.index + 1 if cell.number is None else cell.number,
        choice.run,
        cell.cell_type,
        cell.tags,
        cell.attachments,
        cell.metadata,
    )


def of_others(
    draft: Draft,
    job_cells: Sequence[notebooks.JobCell],
    selection: CellSelection,
    options: JobOptions,
    *,
    name: str,
) -> Draft:
    """Return a draft of other cells with the files and all other properties of ``draft``."""
    before = draft.submission
    folder, name = Path(before.working_dir or "."), options.name or name
    path = before.source.path if before.source else None
    modules = {} if before.files else own_modules.of_cells(job_cells, folder)
    notebook = _notebook(job_cells, options, folder=folder, name=name, path=path, modules=modules)
    submission = structs.replace(
        before,
        entry=notebook.entry,
        name=name,
        key=options.key or None,
        output_dir=str(results_folder(folder, name, options.key)),
        parameters={name: notebooks.recorded(each) for name, each in options.parameters.items()},
    )
    old = before.entry.notebook if isinstance(before.entry, NotebookEntry) else ""
    kept = {sha256: each for sha256, each in draft.contents.items() if sha256 != old}
    contents = {**kept, notebook.entry.notebook: notebook.text}
    return Draft(submission, contents, selection.problems, selection)


@dataclass(frozen=True, slots=True)
class _Notebook:
    entry: NotebookEntry
    text: bytes


def _notebook(
    job_cells: Sequence[notebooks.JobCell],
    options: JobOptions,
    *,
    folder: Path,
    name: str,
    path: str | None,
    left: tuple[str, ...] = (),
    modules: Mapping[str, object] | None = None,
    metadata: notebooks.Metadata = NO_METADATA,
) -> _Notebook:
    keep = options.keep.of(left)
    text = notebooks.build(job_cells, path=path, keep=keep, modules=modules, metadata=metadata)
    # A unique name, the same as its folder's: never the name of the original notebook.
    stem = Path(path).stem if path and path.endswith(".ipynb") else name
    file_name = f"{results_folder(folder, stem, options.key).name[-180:]}.ipynb"
    return _Notebook(NotebookEntry(hashlib.sha256(text).hexdigest(), file_name), text)


def _prose(selection: CellSelection, by_id: Mapping[str, NotebookCell], *, whole: bool) -> set[str]:
    """Return the cells without code to include: all, or those selected or right before code."""
    kept: set[str] = set()
    waiting: list[str] = []
    for each in selection.cells:
        if by_id[each.id].cell_type == "code":
            kept.update(waiting if each.included else ())
            waiting = []
            continue
        waiting.append(each.id)
        if whole or each.selected:
            kept.add(each.id)
    return kept


def of_script(
    script: Path,
    args: Sequence[str],
    options: JobOptions,
    *,
    kind: Kind,
    interpreter: str,
    folder: Path | None = None,
    path: str | None = None,
    files: snapshot.FolderSnapshot | None = None,
    here: KernelEnvironment = HERE,
) -> Draft:
    """Return a draft of a script in a copy of ``folder`` (by default the script's folder).

    Without ``files`` the draft has no files of the folder: it is for a preview, not to be sent.
    """
    root = folder or script.parent
    inside = script.relative_to(root).as_posix()
    submission = _submission(
        ScriptEntry(inside, list(args)),
        options,
        name=options.name or name_of(inside),
        folder=root,
        interpreter=interpreter,
        source=Source(kind=kind, path=path or inside),
        files=list(files.files) if files else [],
        here=here,
    )
    return Draft(submission, dict(files.contents) if files else {}, left_out_problems.of(files))


def results_folder(folder: Path, name: str, key: str) -> Path:
    """Return the folder for a job's results. It depends on the key, so a retry names the same.

    >>> results_folder(Path("/data"), "my job/1", "k").as_posix()
    '/data/benchpool-results/my-job-1-8254c329'
    """
    mark = hashlib.sha256(key.encode()).hexdigest()[:8]
    return folder / RESULTS / f"{plain(name)}-{mark}"


def name_of(path: str) -> str:
    """Return the default name of a job.

    >>> name_of("exp/train model.ipynb")
    'train model'
    """
    kept = "".join(each if each.isprintable() else "-" for each in Path(path).stem)
    return kept.strip()[:100] or "job"


def sentence(text: str) -> str:
    """Return a problem's text with a full stop.

    >>> sentence("`y` is defined in no cell"), sentence("did you mean `x`?")
    ('`y` is defined in no cell.', 'did you mean `x`?')
    """
    return text if text.endswith((".", "?")) else f"{text}."


def plain(name: str) -> str:
    """Return a name in a form that is safe in a file name."""
    kept = "".join(each if each.isalnum() or each in "._-" else "-" for each in name)
    return kept.strip(".")[:80] or "job"


def _submission(
    entry: Entry,
    options: JobOptions,
    *,
    name: str,
    folder: Path,
    interpreter: str,
    source: Source,
    working_dir: str | None = None,
    files: list[SnapshotFile] | None = None,
    here: KernelEnvironment = HERE,
) -> JobSubmission:
    return JobSubmission(
        entry=entry,
        name=name,
        project=options.project,
        env=dict(options.env),
        parameters={name: notebooks.recorded(each) for name, each in options.parameters.items()},
        key=options.key or None,
        interpreter=interpreter,
        working_dir=working_dir,
        output_dir=str(results_folder(folder, name, options.key)),
        files=files or [],
        source=source,
        image=options.image or here.image,
        **structs.asdict(options.spec),
    )
