"""Submitted code of a job, its present location, and the differences between the two."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import Literal

from benchpool import notebooks
from benchpool.cells import NotebookCell, magics
from benchpool.server.requests import SentJob
from benchpool.server.served_folder import ServedFolder
from benchpool_scheduler.client.notebooks import parameters as notebook_parameters
from benchpool_scheduler.contract import Job, JobSubmission, ScriptEntry, SentCode
from benchpool_scheduler.errors import BenchpoolError

Way = Literal["cells", "notebook", "script"]
CONTEXT = 2
"""Context lines of a diff."""

FROM_A_KERNEL = frozenset({"magic", "function"})
"""Kinds of sources that are in no file."""


def describe(
    served: ServedFolder,
    job: Job,
    submission: JobSubmission,
    code: SentCode,
    printed: str | None = None,
) -> SentJob:
    """Return the page's data about a job's code, with the position of the failure. Reads files.

    Args:
        printed: File name from a traceback in the log; used instead of the failed file.
    """
    numbers = job.reason.numbers if job.reason is not None else {}
    failed, line = numbers.get("cell"), numbers.get("line")
    file = origin(served, submission)
    if printed is None:
        failing = origin(served, submission, numbers.get("file"))
    else:
        failing = _of_traceback(served, submission, printed)
    source = submission.source
    cell = next((each.id for each in code.cells if each.number == failed), None)
    return SentJob(
        path=None if failing is None else served.relative(failing),
        origin=None if file is None else served.relative(file),
        send=_how(submission, code),
        selected=list(source.cells) if source is not None else [],
        cell=cell,
        line=line if isinstance(line, int) else None,
        cells=code.cells,
        text=code.text,
        cut=code.cut,
        command=code.command,
        difference=_difference(served, submission, code, source is not None and bool(source.cells)),
    )


def origin(served: ServedFolder, submission: JobSubmission, named: object = None) -> Path | None:
    """Return the file that a submission came from, if this server serves it, else None.

    Args:
        named: Name of another file of the same submission to return instead.
    """
    source, entry = submission.source, submission.entry
    path = entry.path if isinstance(entry, ScriptEntry) else source.path if source else None
    if isinstance(named, str) and isinstance(entry, ScriptEntry):
        same = [each.path for each in submission.files if PurePath(each.path).name == named]
        path = path if PurePath(entry.path).name == named else same[0] if len(same) == 1 else path
    if path is None:
        return None
    if source is not None and source.kind in {"cells", "notebook"}:
        # The page's path is relative to the served folder; the job ran in its own folder.
        path = PurePath(path).name
    file = _folder(submission) / path
    return file if file.is_file() and served.relative(file) is not None else None


def _folder(submission: JobSubmission) -> Path:
    if submission.working_dir is not None:
        return Path(submission.working_dir)
    return Path(submission.output_dir).parents[1] if submission.output_dir else Path()


def _of_traceback(served: ServedFolder, submission: JobSubmission, printed: str) -> Path | None:
    """Return the file of the job's folder that a traceback names, also by its path in a copy."""
    parts = PurePath(printed).parts[1:]
    for start in range(len(parts)):
        file = _folder(submission).joinpath(*parts[start:])
        if ".." not in parts and file.is_file() and served.relative(file) is not None:
            return file
    return None


def _how(
    submission: JobSubmission, code: SentCode
) -> Literal["cells", "notebook", "script"] | None:
    """Return the form in which the page can submit it again, or None."""
    if code.kind == "script":
        return "script"
    kind = submission.source.kind if submission.source is not None else None
    if code.kind == "notebook" and kind not in FROM_A_KERNEL:
        return "cells" if kind == "cells" else "notebook"
    return None


def _difference(
    served: ServedFolder, submission: JobSubmission, code: SentCode, chosen: bool
) -> str | None:
    """Return the changes of the file since, as a diff; empty if unchanged, None if unknown."""
    file = origin(served, submission)
    kind = submission.source.kind if submission.source is not None else None
    try:
        if file is None or kind in FROM_A_KERNEL:
            return None
        if code.kind == "notebook":
            return "".join(_of_cells(code, notebooks.read(file), chosen))
        if code.text is None or code.cut:
            return None
        return "".join(_lines(code.text, file.read_text("utf-8", "replace"), file.name))
    except (BenchpoolError, OSError):
        return None


def _of_cells(code: SentCode, now: Sequence[NotebookCell], chosen: bool) -> Iterator[str]:
    known = {each.id: each for each in now}
    places = {each.id: place for place, each in enumerate(now, start=1)}
    for sent in code.cells:
        cell = known.get(sent.id)
        if sent.id == notebook_parameters.INJECTED:
            continue
        if cell is None:
            yield f"--- cell {sent.number} is not in the notebook any more\n"
            continue
        text = magics.read(cell.source).run if cell.cell_type == "code" else cell.source
        place = places[sent.id]
        moved = "" if place == sent.number else f", which was cell {sent.number}"
        yield from _lines(sent.source, text, f"cell {place}{moved}")
    there = {each.id for each in code.cells}
    for cell in [] if chosen else now:
        if cell.id not in there and cell.source.strip():
            yield from _lines("", cell.source, f"cell {places[cell.id]}, which is new")


def _lines(before: str, after: str, name: str) -> Iterator[str]:
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), "sent", "now", n=CONTEXT, lineterm=""
    )
    shown = list(lines)[2:]
    if shown:
        yield f"=== {name}\n"
        yield from (f"{line}\n" for line in shown)
