"""Reports about excluded cells that may matter for the result."""

from __future__ import annotations

from benchpool.cells import CellSelection, KnownBeside, NotebookCell, choose
from benchpool.kernel.answer import KernelAnswer, NameFacts
from benchpool_support.cells import chosen, included

CELLS = ["from tools import make", "a = make()\nb = make()", "b.sort()", "print(a)"]


def _asked(*, together: bool) -> CellSelection:
    cells = [NotebookCell(str(n), text, n == 3) for n, text in enumerate(CELLS)]
    names = {name: _list(number, ["ba"[number]] * together) for number, name in enumerate("ab")}
    return choose(cells, seen=KnownBeside(KernelAnswer(names, CELLS[:3], 1, 0.0)))


def _list(identity: int, shares: list[str]) -> NameFacts:
    return NameFacts(identity, "builtins.list", False, True, 80, None, 2, None, shares)


def test_change_through_shared_data_is_reported() -> None:
    answer = _asked(together=True)
    assert included(answer) == [0, 1, 3]
    assert [each.text for each in answer.problems] == [
        "cell 3 may change `b`, which shares data with `a` in the kernel, and is not included: "
        "tick it to include it"
    ]


def test_unshared_names_are_not_reported() -> None:
    assert _asked(together=False).problems == ()


def test_use_of_stored_function_is_reported() -> None:
    keeps = "hits = []\ndef note(x):\n    hits.append(x)\nbox = [note]\nother = 1"
    answer = chosen(keeps, "n = box[0]", "print(hits)")
    assert [each.text for each in answer.problems] == [
        "cell 2 uses an object that keeps `note`, which may change `hits`, and is not included: "
        "tick it to include it"
    ]
    assert chosen(keeps, "n = box[0]", "print(other)").problems == ()


def test_unknown_function_between_seed_and_draw_is_reported() -> None:
    cells = ["import mine, numpy as np", "np.random.seed(0)", "z = mine.noise(3)"]
    (problem,) = chosen(*cells, "print(np.random.rand())").problems
    assert problem.text == (
        "cell 3 calls `mine.noise`, which may draw random numbers after the seed, and is not "
        "included: tick it to include it"
    )
    assert chosen(*cells, "print(1)").problems == ()
