"""Selected cells, and the cells that they need: pure analysis of a notebook's text.

Nothing is executed and no kernel is asked, so that the answer is the same with a busy kernel.
"""

from benchpool.cells.selection import CellChoice, CellSelection, NotebookCell, Problem, choose

__all__ = ["CellChoice", "CellSelection", "NotebookCell", "Problem", "choose"]
