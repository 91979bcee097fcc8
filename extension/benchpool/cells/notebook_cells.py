"""Cells of a notebook as input, and the decision for each cell, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchpool.cells.left_out import Level
from benchpool.kernel.answer import KernelAnswer

SKIPPED = "skip-execution"
"""Tag of cells that a notebook run skips (nbclient, papermill)."""


@dataclass(frozen=True, slots=True)
class NotebookCell:
    """Cell of the notebook.

    Attributes:
        execution_count: None if it never ran.
        tags, attachments: They are sent with it. A cell with the tag ``SKIPPED`` stays out, since
            no job runs it.
        ticked: The user has ticked it: it is included even if no other cell needs it.
        left_out: The user has unticked it.
        metadata: Metadata other than its tags; sent with it.
        failed: It failed when it last ran, with its present text.
        runs: Its known execution counts in the running kernel.
        number: Number that users see; None if that is its position in the notebook.
    """

    id: str
    source: str
    selected: bool = False
    cell_type: str = "code"
    execution_count: int | None = None
    tags: tuple[str, ...] = ()
    attachments: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    left_out: bool = False
    failed: bool = False
    runs: tuple[int, ...] = ()
    ticked: bool = False
    number: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_skipped(self) -> bool:
        """Whether the cell has the tag that keeps a job from running it."""
        return self.cell_type == "code" and SKIPPED in self.tags

    @property
    def stays_out(self) -> str | None:
        """Reason why it stays out even if another cell needs it; None if it is a candidate."""
        if self.left_out:
            return "left out by you"
        return f"skipped by its tag `{SKIPPED}`" if self.is_skipped else None


@dataclass(frozen=True, slots=True)
class KnownBeside:
    """Facts known besides the cells themselves.

    Attributes:
        kernel: Answer of the notebook's kernel; None if it was not queried.
        deleted: Execution counts of cells that are no longer in the notebook.
        ticked: IDs of the cells shown to the user as included: these are sent, no others.
    """

    kernel: KernelAnswer | None = None
    deleted: frozenset[int] = frozenset()
    ticked: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class CellChoice:
    """Decision for one cell.

    ``selected``: it is included only because the user chose it. ``run``: its text as the job runs
    it. ``gives``: the names that other cells need from it, and the positions of those cells.
    ``skipped``: it has the tag ``SKIPPED``.
    """

    id: str
    index: int
    included: bool
    selected: bool
    why: str | None
    run: str
    gives: tuple[tuple[str, tuple[int, ...]], ...] = ()
    skipped: bool = False

    @property
    def is_run(self) -> bool:
        """Whether it is included and no tag keeps the job from running it."""
        return self.included and not self.skipped


@dataclass(frozen=True, slots=True)
class Problem:
    """Error, warning or information about the cells. ``cell`` is an ID; lines count from 1."""

    level: Level
    text: str
    cell: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class CellSelection:
    """Result: one choice for each cell, and the problems, errors first.

    ``left`` are the names whose values the selected cells define or change, in their order.
    """

    cells: tuple[CellChoice, ...]
    problems: tuple[Problem, ...]
    left: tuple[str, ...] = ()
