"""Judge the cells that a selection includes, by the traced corpus: recall, precision, idioms, time.

``python benchmarks/cell_selection.py [--each]``; with ``--each`` all differences are listed.
"""

from __future__ import annotations

import sys
import time
from collections import Counter

import checkout  # noqa: F401 (makes what tests use importable)

from benchpool.cells import NotebookCell, choose
from benchpool_support.cell_corpus import Compared, compared, texts


def main(*, each: bool) -> int:
    """Print the tables; return 1 if any needed cell is silently left out."""
    every = list(compared())
    notebooks = [one for one in every if one.text.is_notebook]
    idioms = [one for one in every if not one.text.is_notebook]
    _notebooks(notebooks)
    _idioms(idioms)
    print(f"\nanalysis of a selection among 200 cells: {_p95_ms():.0f} ms (p95)")
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


def _p95_ms() -> float:
    """Return the analysis time of a selection, each time with new texts, in milliseconds.

    It is processor time, so that other work on the machine has no effect.
    """
    sources = [source for text in texts() if text.is_notebook for source in text.cells]
    taken = []
    for turn in range(20):
        some = [sources[(turn * 37 + number) % len(sources)] for number in range(200)]
        cells = [
            NotebookCell(str(number), f"{source}\n# {turn}", number == 199)
            for number, source in enumerate(some)
        ]
        began = time.process_time()
        choose(cells)
        taken.append((time.process_time() - began) * 1000)
    return sorted(taken)[int(0.95 * len(taken)) - 1]


if __name__ == "__main__":
    sys.exit(main(each="--each" in sys.argv[1:]))
