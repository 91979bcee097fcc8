"""Selected cells, and the cells that they need: pure analysis of a notebook's text.

Nothing is executed. What the kernel says makes the answer more precise; without it all is found
from the texts, so that a busy kernel is no hindrance.
"""

from benchpool.cells.notebook_cells import (
    CellChoice,
    CellSelection,
    KnownBeside,
    NotebookCell,
    Problem,
)
from benchpool.cells.selection import choose, names_of

__all__ = [
    "CellChoice",
    "CellSelection",
    "KnownBeside",
    "NotebookCell",
    "Problem",
    "choose",
    "names_of",
]
