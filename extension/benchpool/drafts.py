"""From cells, a notebook or a script to what the pool accepts, and the contents that go with it.

One way for button, magic and function, so that all make the same job and say the same words.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from msgspec import structs

from benchpool import notebook_job
from benchpool.cells import CellSelection, NotebookCell, Problem, choose
from benchpool.kernel_environment import KernelEnvironment
from benchpool.notebook_job import JobCell
from benchpool_scheduler.client import snapshot
from benchpool_scheduler.contract import (
    Entry,
    JobSubmission,
    NotebookEntry,
    ScriptEntry,
    SnapshotFile,
    Source,
)
from benchpool_scheduler.contract.options import words_of
from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.errors import InvalidInput

RESULTS = "benchpool-results"
HERE = KernelEnvironment()
"""One machine: jobs see what is here."""
Kind = Literal["cells", "notebook", "script", "python", "magic"]


@dataclass(frozen=True, slots=True)
class JobOptions:
    """What the user chose beside the code: what the job asks for, and where it belongs.

    ``key`` makes a repeat of the same sending harmless.
    """

    spec: JobSpec = field(default_factory=JobSpec)
    name: str | None = None
    project: str | None = None
    image: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    key: str = ""

    @classmethod
    def of(cls, fields: Mapping[str, Any], key: str) -> JobOptions:
        """Return the choices that these fields of a submission are."""
        names = JobSpec.__struct_fields__
        asked = {name: value for name, value in fields.items() if name in names}
        others = {name: value for name, value in fields.items() if name not in names}
        return cls(JobSpec(**asked), **others, key=key)


@dataclass(frozen=True, slots=True)
class Draft:
    """A submission, the contents that it needs by hash, and what is to say about it."""

    submission: JobSubmission
    contents: Mapping[str, Path | bytes]
    problems: tuple[Problem, ...] = ()
    selection: CellSelection | None = None

    def check(self) -> Draft:
        """Return this draft when nothing in it is known to fail.

        Raises:
            InvalidInput: With the first error, its cell's number and line.
        """
        for each in self.problems:
            if each.level == "error":
                raise InvalidInput(f"{self.place(each)}{sentence(each.text)}", field="cells")
        return self

    def place(self, problem: Problem) -> str:
        """Return where a problem is, for a sentence: ``Cell 3, line 2: ``."""
        cells = self.selection.cells if self.selection else ()
        number = next((each.index + 1 for each in cells if each.id == problem.cell), None)
        cell = "" if number is None else f"cell {number}"
        source = self.submission.source
        if source is not None and source.kind == "magic":
            # A kernel knows no cells, only the numbers of what it ran.
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
) -> Draft:
    """Draft a job of the selected cells and of those that they need; ``whole``: of all cells.

    It runs in ``folder`` with ``interpreter``; where a job does not see that folder, in a copy of
    its files, which are in the draft when it is ``to_send``. ``path`` is the notebook's, for its
    name.
    """
    selection = choose(cells)
    by_id = {cell.id: cell for cell in cells}
    told = _prose(selection, by_id, whole=whole)
    text = notebook_job.build(
        [
            JobCell(each.id, each.index + 1, each.run, by_id[each.id].cell_type)
            for each in selection.cells
            if each.included or each.id in told
        ],
        path=path,
    )
    sha256 = hashlib.sha256(text).hexdigest()
    files = snapshot.take(folder) if here.files_travel and to_send else None
    name = options.name or name_of(path or "cells")
    # A name of its own, the same as its folder's: never that of the notebook that was sent.
    stem = Path(path).stem if path and path.endswith(".ipynb") else name
    file_name = f"{results_folder(folder, stem, options.key).name[-180:]}.ipynb"
    sent = [] if whole else [each.id for each in selection.cells if each.selected]
    submission = _submission(
        NotebookEntry(sha256, file_name),
        options,
        name=name,
        folder=folder,
        interpreter=interpreter,
        source=Source(kind=kind, path=path, cells=sent),
        working_dir=str(folder),
        files=list(files.files) if files else [],
        here=here,
    )
    contents: dict[str, Path | bytes] = {**(files.contents if files else {}), sha256: text}
    return Draft(submission, contents, selection.problems, selection)


def _prose(selection: CellSelection, by_id: Mapping[str, NotebookCell], *, whole: bool) -> set[str]:
    """Return the cells without code that go along: all, or those selected or right before code."""
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
    """Draft a job of a script in a copy of ``folder`` (the script's own when it is not said).

    Without ``files`` nothing of the folder is in the draft: good for a preview, not to send.
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
    return Draft(submission, dict(files.contents) if files else {})


def results_folder(folder: Path, name: str, key: str) -> Path:
    """Return where a job's results go. It comes from the key, so that a repeat names the same.

    >>> results_folder(Path("/data"), "my job/1", "k").as_posix()
    '/data/benchpool-results/my-job-1-8254c329'
    """
    mark = hashlib.sha256(key.encode()).hexdigest()[:8]
    return folder / RESULTS / f"{plain(name)}-{mark}"


def name_of(path: str) -> str:
    """Return the name of a job that was given none.

    >>> name_of("exp/train model.ipynb")
    'train model'
    """
    kept = "".join(each if each.isprintable() else "-" for each in Path(path).stem)
    return kept.strip()[:100] or "job"


def sentence(text: str) -> str:
    """Return a problem's text with its full stop.

    >>> sentence("`y` is defined in no cell"), sentence("did you mean `x`?")
    ('`y` is defined in no cell.', 'did you mean `x`?')
    """
    return text if text.endswith((".", "?")) else f"{text}."


def plain(name: str) -> str:
    """Return a name as part of a file's name."""
    kept = "".join(each if each.isalnum() or each in "._-" else "-" for each in name)
    return kept.strip(".")[:80] or "job"


def command(draft: Draft) -> str:
    """Return what does the same without the dialog: in a terminal, for cells in a cell."""
    submission, entry = draft.submission, draft.submission.entry
    code = entry.path if isinstance(entry, ScriptEntry) else _path_of(submission)
    # How many GPUs is always said.
    words = words_of(submission, {"gpus": None, "name": name_of(code)})
    if isinstance(entry, ScriptEntry):
        return shlex.join(["benchpool", "submit", *words, entry.path, *entry.args])
    if draft.submission.source and draft.submission.source.kind == "notebook":
        return shlex.join(["benchpool", "submit", *words, Path(code).name])
    return shlex.join(["%%train", *words])


def _path_of(submission: JobSubmission) -> str:
    return (submission.source.path if submission.source else None) or "cells"


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
        key=options.key or None,
        interpreter=interpreter,
        working_dir=working_dir,
        output_dir=str(results_folder(folder, name, options.key)),
        files=files or [],
        source=source,
        image=options.image or here.image,
        **structs.asdict(options.spec),
    )
