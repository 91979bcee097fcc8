"""Judge the cells that a selection includes, by the traced corpus: recall, precision, idioms, time.

``python benchmarks/cell_selection.py [--each] [--times]``: with ``--each`` all differences are
listed; with ``--times`` only the analysis is timed.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import checkout  # noqa: F401 (makes what tests use importable)

from benchpool.cells import KnownBeside, NotebookCell, choose, names_of
from benchpool.kernel.answer import KernelAnswer
from benchpool_support.cell_corpus import Compared, answers, compared, texts

TURNS = 40
"""Runs of each measurement."""


def main(*, each: bool) -> int:
    """Print the tables; return 1 if any needed cell is silently left out."""
    every = list(compared())
    notebooks = [one for one in every if one.text.is_notebook]
    idioms = [one for one in every if not one.text.is_notebook]
    _notebooks(notebooks)
    _idioms(idioms)
    _times()
    if each:
        _differences(every)
    return int(any(one.verdict == "silently different" for one in every))


def _notebooks(found: list[Compared]) -> None:
    held = sum(one.needed <= one.taken for one in found)
    needed = sum(len(one.needed) for one in found)
    right = sum(len(one.needed & one.taken) for one in found)
    taken = sum(len(one.taken) for one in found)
    needed_s = sum(_seconds(one, one.needed & one.taken) for one in found)
    taken_s = sum(_seconds(one, one.taken) for one in found)
    print("| notebooks | selections | nothing missed | recall | precision, cells | seconds |")
    print("|---|---|---|---|---|---|")
    count = len({one.text.name for one in found})
    print(
        f"| {count} | {len(found)} | {held} | {right / max(needed, 1):.3f} "
        f"| {right / max(taken, 1):.3f} | {needed_s / max(taken_s, 1e-9):.3f} |"
    )


def _seconds(one: Compared, numbers: frozenset[int]) -> float:
    return sum(one.seconds[number] for number in numbers)


def _idioms(found: list[Compared]) -> None:
    topics: dict[str, Counter[str]] = {}
    for one in found:
        topics.setdefault(one.text.name.partition(":")[0], Counter())[one.verdict] += 1
    print("\n| idioms | equal | told | silently different |\n|---|---|---|---|")
    topics["all"] = sum(topics.values(), Counter())
    for topic, counts in topics.items():
        row = (topic, counts["equal"], counts["told"], counts["silently different"])
        print("| " + " | ".join(map(str, row)) + " |")


def _differences(found: list[Compared]) -> None:
    for one in found:
        missed, more = sorted(one.needed - one.taken), sorted(one.taken - one.needed)
        if missed or more:
            verdict = one.verdict if missed else "more than needed"
            print(f"{one.text.name} [{one.selected}]: {verdict}; missed {missed}, more {more}")


def _times() -> None:
    """Print the analysis time of selections among 200 cells, in milliseconds.

    It is processor time, so that it depends little on other work of the machine.
    """
    print("\n| analysis of a selection among 200 cells | runs | median | p95 | max |")
    print("|---|---|---|---|---|")
    without = [_mixed(turn, "without") for turn in range(TURNS)]
    _print_times("new texts, without a kernel answer", without, KnownBeside())
    _print_times("the same texts, one more cell ticked", map(_ticked, without[-1:] * TURNS), None)
    _print_times("new texts, with a kernel answer", [_mixed(t, "same") for t in range(TURNS)], None)
    edited = [_mixed(turn, "edited") for turn in range(TURNS)]
    _print_times("new texts, every tenth edited since it ran", edited, None, older=10)


def _mixed(turn: int, mark: str) -> list[NotebookCell]:
    """Return 200 cells of the corpus' notebooks, the last one selected, each text a new one."""
    sources = [source for text in texts() if text.is_notebook for source in text.cells]
    some = [sources[(turn * 37 + number) % len(sources)] for number in range(200)]
    return [
        NotebookCell(str(number), f"{source}\n# {turn} {mark}", number == 199)
        for number, source in enumerate(some)
    ]


def _ticked(cells: list[NotebookCell]) -> list[NotebookCell]:
    return [replace(cells[0], ticked=True), *cells[1:]]


def _print_times(
    title: str, every: Iterable[list[NotebookCell]], seen: KnownBeside | None, older: int = 0
) -> None:
    taken = []
    for cells in every:
        known = seen or _kernel_of(cells, older)
        began = time.process_time()
        choose(cells, seen=known)
        taken.append((time.process_time() - began) * 1000)
    taken.sort()
    middle, most = taken[len(taken) // 2], taken[int(0.95 * len(taken)) - 1]
    print(f"| {title} | {len(taken)} | {middle:.0f} | {most:.0f} | {taken[-1]:.0f} |")


def _kernel_of(cells: list[NotebookCell], older: int) -> KnownBeside:
    """Return a kernel's answer for cells: what their names held when the corpus ran.

    With ``older``, each cell of this distance ran with another text.
    """
    held = {
        name: facts
        for text in texts()
        if text.is_notebook
        for name, facts in answers()[text.name].names.items()
    }
    ran = [cell.source for cell in cells[:-1]]
    if older:
        ran[::older] = [f"{source}\n# older" for source in ran[::older]]
    names = {name: held[name] for name in names_of(cells) & held.keys()}
    return KnownBeside(KernelAnswer(names, ran, 1, 0.0))


if __name__ == "__main__":
    if "--times" in sys.argv[1:]:
        _times()
    else:
        sys.exit(main(each="--each" in sys.argv[1:]))
