"""Static analysis of a notebook: the selected cells and the cells that they need.

Nothing is executed. An answer of the kernel makes the result more precise. Without it, everything
is found from the cells' text, so a busy kernel does not block the analysis.
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
