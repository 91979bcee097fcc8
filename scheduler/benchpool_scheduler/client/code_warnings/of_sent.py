"""Warnings about the code of a job: its cells, its script, and the modules beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchpool_scheduler.client import notebooks
from benchpool_scheduler.client.code_warnings import gpu_choice
from benchpool_scheduler.client.code_warnings.sources import commands_in, piece_of_source
from benchpool_scheduler.client.imports import files_above
from benchpool_scheduler.client.imports.checking import with_own
from benchpool_scheduler.client.imports.files_above import SentFolder
from benchpool_scheduler.client.imports.own_files import MOST_BYTES, OwnModules
from benchpool_scheduler.client.imports.reading import Piece
from benchpool_scheduler.contract import JobSubmission, ModuleEntry, ScriptEntry


@dataclass(frozen=True, slots=True)
class CodeWarning:
    """Warning about code that is likely to fail.

    Attributes:
        where: Cell or file that contains it.
        text: Problem and remedy, without a full stop.
    """

    where: str
    line: int
    text: str


def of_pieces(
    pieces: Sequence[Piece], submission: JobSubmission, root: Path, sent: SentFolder | None
) -> list[CodeWarning]:
    """Return the warnings about pieces of code and the user's modules that they import.

    Args:
        root: Folder where the code finds its own modules.
        sent: Folder that is sent. None if the job sees the folder itself.
    """
    read = [piece for piece, _ in with_own(pieces, OwnModules(root))]
    return list(dict.fromkeys(_of(read, submission, sent)))


def of_submission(
    folder: Path, submission: JobSubmission, notebook: str | None = None
) -> list[CodeWarning]:
    """Return the warnings about a terminal's submission, whose folder is sent as a copy.

    Args:
        notebook: Path of a notebook, below the folder.
    """
    entry = submission.entry
    if notebook is not None:
        cells = enumerate(notebooks.read(folder / notebook).cells, 1)
        code = ((n, cell.source) for n, cell in cells if cell.is_run)
        pieces = [piece_of_source(f"cell {n}", source) for n, source in code]
        return of_pieces(pieces, submission, folder, SentFolder(folder, notebook))
    if isinstance(entry, ModuleEntry):
        names = [f"{entry.module.replace('.', '/')}{end}" for end in (".py", "/__main__.py")]
        path = next((name for name in names if (folder / name).is_file()), None)
    else:
        path = entry.path if isinstance(entry, ScriptEntry) else None
    return [] if path is None else of_script(folder, path, submission)


def of_script(folder: Path, path: str, submission: JobSubmission) -> list[CodeWarning]:
    """Return the warnings about a Python script in a folder that is sent as a copy."""
    file = folder / path
    if file.suffix != ".py" or not file.is_file() or file.stat().st_size > MOST_BYTES:
        return []
    piece = piece_of_source(path, file.read_text("utf-8", "replace"))
    return of_pieces([piece], submission, file.parent, SentFolder(folder, path))


def _of(
    pieces: Sequence[Piece], submission: JobSubmission, sent: SentFolder | None
) -> Iterator[CodeWarning]:
    contained = submission.image is not None
    for piece in pieces:
        found = list(gpu_choice.choices(piece, submission.gpus, contained=contained))
        if sent is not None:
            found += files_above.uses(piece, sent, commands_in(piece))
        for line, text in sorted(found):
            yield CodeWarning(piece.where, line, text)
