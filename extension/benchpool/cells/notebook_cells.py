"""A notebook's cells as they are given, and what is said about each, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchpool.cells.left_out import Level
from benchpool.kernel.answer import KernelAnswer

SKIPPED = "skip-execution"
"""Tag of the cells that a run of a notebook skips (nbclient, papermill)."""


@dataclass(frozen=True, slots=True)
class NotebookCell:
    """A cell as it stands in the notebook.

    Attributes:
        execution_count: None where it never ran.
        tags, attachments: They go along with it. With ``SKIPPED`` among its tags the cell stays
            out, since no job runs it.
        ticked: The user has ticked it: it goes along whether another cell needs it or not.
        left_out: The user has unticked it.
        metadata: Others than its tags; they go along with it.
        failed: It failed when it last ran, as it stands.
        runs: Its execution counts in the kernel that runs now, as far as they are known.
        number: What people call it by; None where that is its position in the notebook.
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
        """The cell has the tag that keeps a job from running it."""
        return self.cell_type == "code" and SKIPPED in self.tags

    @property
    def stays_out(self) -> str | None:
        """Why it stays out whatever needs it; None where it is a candidate."""
        if self.left_out:
            return "left out by you"
        return f"skipped by its tag `{SKIPPED}`" if self.is_skipped else None


@dataclass(frozen=True, slots=True)
class KnownBeside:
    """What is known beside the cells themselves.

    Attributes:
        kernel: What the notebook's kernel said; None where it was not asked.
        deleted: Execution counts of cells that are no longer in the notebook.
        ticked: Ids of the cells that the user was shown as going along: these go, no others.
    """

    kernel: KernelAnswer | None = None
    deleted: frozenset[int] = frozenset()
    ticked: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class CellChoice:
    """What happens to one cell.

    ``selected`` is what goes along by the user's hand alone. ``run`` is what the job runs of it;
    ``gives`` the names that others need of it, and the positions of those cells. A ``skipped``
    cell has the tag ``SKIPPED``.
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
        """It goes along, and no tag keeps the job from running it."""
        return self.included and not self.skipped


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that would fail, may, or is only said; ``cell`` is an id, lines count from 1."""

    level: Level
    text: str
    cell: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class CellSelection:
    """The answer: one choice for each cell, and the problems, errors first.

    ``left`` are the names whose values the selected cells define or change, in their order.
    """

    cells: tuple[CellChoice, ...]
    problems: tuple[Problem, ...]
    left: tuple[str, ...] = ()
