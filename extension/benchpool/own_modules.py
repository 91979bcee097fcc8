"""Modules of the user that the cells of a job import: they are sent unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchpool.cells import magics
from benchpool_scheduler.client import notebooks
from benchpool_scheduler.client.imports import Piece
from benchpool_scheduler.client.imports.own_sources import own_sources


def of_cells(cells: Sequence[notebooks.JobCell], folder: Path) -> dict[str, object]:
    """Return the notebook's entries about modules that cells import from a folder. Reads files."""
    reads = ((each.id, magics.read(each.source)) for each in cells if each.is_run)
    pieces = [Piece(id_, read.tree, read.run) for id_, read in reads if read.tree is not None]
    return own_sources(pieces, [folder]).metadata
