"""Differences between how the kernel made its names and how the job will (text, order)."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from benchpool.cells.evidence import KernelHistory
from benchpool.cells.notebook_cells import NotebookCell, Problem
from benchpool.cells.search import Search


def differences(
    cells: Sequence[NotebookCell], search: Search, history: KernelHistory, deleted: Collection[int]
) -> Iterator[Problem]:
    """Yield a problem for each shared name that the kernel made in another way than the job will.

    Args:
        cells: All cells.
        search: The cells that are included.
        history: What the kernel ran.
        deleted: Execution counts of cells that are no longer in the notebook.
    """
    past = _Past(cells, history, deleted)
    reported: set[int] = set()
    for number, names in sorted(search.gives.items()):
        for name in sorted(names):
            at = history.binder(name)
            if at is None or history.texts[at] == cells[number].source.strip():
                yield from past.changed(name, reported)
            elif at not in reported:
                reported.add(at)
                text = f"`{name}` here is from {past.maker(at)}; the job runs cell {number + 1}"
                yield Problem("warning", f"{text} in its current version", cells[number].id)
    yield from past.order(sorted(search.why))


class _Past:
    def __init__(
        self, cells: Sequence[NotebookCell], history: KernelHistory, deleted: Collection[int]
    ) -> None:
        self.cells = cells
        self.history = history
        self.deleted = deleted
        code = [each for each in enumerate(cells) if each[1].cell_type == "code"]
        self.by_text = {cell.source.strip(): number for number, cell in code}
        self.strange = {at for at, text in enumerate(history.texts) if text not in self.by_text}
        """Texts that are in no cell now."""
        self.by_run = {run: number for number, cell in code for run in cell.runs}
        self.by_count = {cell.execution_count: number for number, cell in code}

    def maker(self, at: int) -> str:
        """Return a description of a text of the history."""
        count = self.history.first + at
        number = self.by_text.get(self.history.texts[at])
        if number is not None:
            return f"cell {number + 1}, which ran last"
        number = self.by_run.get(count, self.by_count.get(count))
        if number is not None:
            return f"an older version of cell {number + 1}"
        if count in self.deleted:
            return f"a deleted cell (In [{count}])"
        return f"code that is in no cell now (In [{count}])"

    def changed(self, name: str, reported: set[int]) -> Iterator[Problem]:
        """Yield the texts that changed a name in the kernel but are in no cell now."""
        if not self.strange:
            return
        changes = self.history.search.changes.fresh_copy()
        for at, _ in changes.changing(name, len(self.history.texts)):
            if at in self.strange and at not in reported:
                reported.add(at)
                text = (
                    f"`{name}` here may have been changed by {self.maker(at)}, which the job does "
                    "not run"
                )
                yield Problem("warning", text)

    def order(self, chosen: list[int]) -> Iterator[Problem]:
        """Yield the first two cells that ran in the kernel in reverse order."""
        texts = Counter(each.source.strip() for each in self.cells)
        last = {text: at for at, text in enumerate(self.history.texts) if texts[text] == 1}
        ran = [
            (number, last[text])
            for number in chosen
            if (text := self.cells[number].source.strip()) in last
        ]
        for (before, first), (after, second) in itertools.pairwise(ran):
            if first > second:
                text = (
                    f"here cell {after + 1} ran before cell {before + 1}; "
                    "the job runs them from top to bottom"
                )
                yield Problem("warning", text, self.cells[after].id)
                return
