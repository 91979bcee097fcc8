"""Problems in the code of a draft: what is likely to fail in a job."""

from __future__ import annotations

from pathlib import Path, PurePath

from benchpool.cells import CellChoice, Problem, magics
from benchpool.drafts import Draft
from benchpool.kernel_environment import KernelEnvironment
from benchpool_scheduler.client.code_warnings import (
    SentFolder,
    of_pieces,
    of_script,
    piece_of_source,
)
from benchpool_scheduler.client.imports import Piece
from benchpool_scheduler.contract import ScriptEntry


def problems(draft: Draft, script: Path | None, here: KernelEnvironment) -> list[Problem]:
    """Return the warnings about the code of a draft, by cell or by file.

    Args:
        script: File of the script, or None for cells.
    """
    submission = draft.submission
    if script is not None and isinstance(submission.entry, ScriptEntry):
        path = PurePath(submission.entry.path)
        folder = script.parents[len(path.parts) - 1]
        found = of_script(folder, path.as_posix(), submission)
    else:
        chosen = draft.selection.cells if draft.selection else ()
        pieces = [_piece(each) for each in chosen if each.is_run]
        root = Path(submission.working_dir or ".")
        path = PurePath((submission.source.path if submission.source else None) or "")
        sent = SentFolder(root, path.name) if here.files_travel else None
        found = of_pieces(pieces, submission, root, sent)
    cells = {each.id for each in draft.selection.cells} if draft.selection else set()
    return [
        Problem("warning", each.text, each.where, each.line)
        if each.where in cells
        else Problem("warning", f"{each.where}, line {each.line}: {each.text}")
        for each in found
    ]


def _piece(cell: CellChoice) -> Piece:
    """Return a cell with the Python that its magics run, as far as it is known."""
    tree = magics.read(cell.run).tree
    return piece_of_source(cell.id, cell.run) if tree is None else Piece(cell.id, tree, cell.run)
