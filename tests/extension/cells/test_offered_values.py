"""Values of the kernel that are offered for sending, and the default choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchpool.cells import NotebookCell, choose
from benchpool.kernel.answer import KernelAnswer, NameFacts
from benchpool.value_offers import ValueOffer, ValuePace, candidates

MIB = 1 << 20
NOTHING: Mapping[str, str] = {}


def notebook(*sources: str, selected: int) -> list[NotebookCell]:
    return [NotebookCell(f"c{at}", text, at == selected) for at, text in enumerate(sources)]


def kernel(**held: tuple[str, int, tuple[str, ...]]) -> KernelAnswer:
    """Return the answer of a kernel from the type, bytes and sharing names of each name."""
    names = {
        name: NameFacts(number, kind, False, True, size, None, None, None, list(shares))
        for number, (name, (kind, size, shares)) in enumerate(held.items())
    }
    return KernelAnswer(names, [], 1, 0.0)


def offers(
    cells: Sequence[NotebookCell],
    answer: KernelAnswer,
    seconds: Mapping[int, float],
    obstacles: Mapping[str, str] = NOTHING,
    most: int = 1 << 30,
) -> list[ValueOffer]:
    return candidates(cells, answer, seconds, ValuePace(), most).offers(obstacles)


def array(mib: int, *shares: str) -> tuple[str, int, tuple[str, ...]]:
    return "numpy.ndarray", mib * MIB, shares


LOAD = ("import numpy as np", "x = load()", "train(x)")
SECONDS = {0: 0.5, 1: 840.0, 2: 0.0}


def test_value_of_slow_cell_is_chosen_and_cell_excluded() -> None:
    cells = notebook(*LOAD, selected=2)
    found = offers(cells, kernel(x=array(200)), SECONDS)
    assert found == [ValueOffer(("x",), "recompute 14 min / send 200.0 MiB, 3 s", True)]
    going = [cell.id for cell in choose(cells, frozenset({"x"})).cells if cell.included]
    assert "c1" not in going


def test_fully_sent_group_is_priced_without_upload() -> None:
    cells = notebook("x, y = load()", "train(x, y)", selected=1)
    answer, slow = kernel(x=array(800), y=array(100)), ValuePace(bytes_per_s=10e6)
    (new,) = candidates(cells, answer, {0: 40.0}, slow).offers({})
    (half,) = candidates(cells, answer, {0: 40.0}, slow, stored={"x"}).offers({})
    assert new == half == ValueOffer(("x", "y"), "recompute 40 s / send 900.0 MiB, 1 min", False)
    (again,) = candidates(cells, answer, {0: 40.0}, slow, stored={"x", "y"}).offers({})
    assert again.text == "recompute 40 s / send 900.0 MiB, 3 s if unchanged since it was sent"
    assert again.chosen, "what is there already takes least time"


def test_value_of_fast_cell_is_not_offered() -> None:
    assert offers(notebook(*LOAD, selected=2), kernel(x=array(1)), {**SECONDS, 1: 29.0}) == []


def test_value_missing_in_kernel_is_not_offered() -> None:
    assert offers(notebook(*LOAD, selected=2), kernel(), SECONDS) == []


def test_value_above_size_limit_is_reported_and_not_chosen() -> None:
    (found,) = offers(notebook(*LOAD, selected=2), kernel(x=array(2048)), SECONDS)
    assert (found.chosen, found.obstacle) == (False, "2.0 GiB, the limit is 1.0 GiB")
    (taken,) = offers(notebook(*LOAD, selected=2), kernel(x=array(2048)), SECONDS, most=4 << 30)
    assert (taken.chosen, taken.obstacle) == (True, "")


def test_chosen_values_fit_limit_together() -> None:
    cells = notebook("x = load()", "y = load()", "train(x, y)", selected=2)
    found = offers(cells, kernel(x=array(700), y=array(700)), {0: 900.0, 1: 60.0})
    assert [(each.names, each.chosen) for each in found] == [(("x",), True), (("y",), False)]


def test_unsendable_value_and_its_sharers_are_not_chosen() -> None:
    cells = notebook("x = load()", "view = x[:9]", "train(x, view)", selected=2)
    answer = kernel(x=array(10, "view"), view=array(10, "x"))
    (found,) = offers(cells, answer, {0: 100.0}, {"view": "view.lock is a lock"})
    assert (found.chosen, found.obstacle) == (False, "view.lock is a lock")


def test_measured_upload_speed_decides_choice() -> None:
    cells, answer = notebook(*LOAD, selected=2), kernel(x=array(500))
    paces = [ValuePace(), ValuePace().after(500 * MIB, 500.0)]
    found = [candidates(cells, answer, {1: 31.0}, pace).offers(NOTHING)[0] for pace in paces]
    assert [each.chosen for each in found] == [True, False]
    assert [each.text.rpartition(", ")[2] for each in found] == ["5 s", "8 min"]


def test_value_changed_by_later_cell_is_not_offered() -> None:
    trains = notebook("net = make()", "net.fit()", selected=1)
    assert offers(trains, kernel(net=array(1)), {0: 100.0}) == []
    below = notebook("x = make()", "train(x)", "x = other()", selected=1)
    assert offers(below, kernel(x=array(1)), {0: 100.0}) == []


def test_names_sharing_objects_are_offered_together() -> None:
    cells = notebook("x = load()", "view = x[:9]", "train(x, view)", selected=2)
    answer = kernel(x=array(10, "view"), view=array(10, "x"))
    (found,) = offers(cells, answer, {0: 100.0, 1: 1.0})
    assert (found.names, found.chosen) == (("view", "x"), True)
    alone = kernel(x=array(10, "view"))
    assert offers(cells, alone, {0: 100.0, 1: 1.0}) == [], "what it shares cannot go along"


def test_values_of_one_cell_are_offered_together() -> None:
    cells = notebook("x, y = load()", "z = slow()", "train(x, y, z)", selected=2)
    answer = kernel(x=array(100), y=array(50), z=array(1))
    found = offers(cells, answer, {0: 840.0, 1: 40.0})
    assert [(each.names, each.chosen) for each in found] == [(("x", "y"), True), (("z",), True)]
    assert found[0].text == "recompute 14 min / send 150.0 MiB, 2 s"
    (alone,) = offers(cells, kernel(x=array(1), z=array(1)), {0: 840.0, 1: 40.0})
    assert alone.names == ("z",), "the cell of x runs for y anyway"


def test_value_beside_needed_import_is_not_offered() -> None:
    cells = notebook("import numpy as np\nx = load()", "train(np.sum(x))", selected=1)
    assert offers(cells, kernel(x=array(1)), {0: 840.0}) == []


def test_value_needed_in_earlier_state_is_not_chosen() -> None:
    cells = notebook("x = load()", "first = x[0]", "x.sort()", "train(x, first)", selected=3)
    found = offers(cells, kernel(x=array(1)), {0: 100.0})
    assert [each.chosen for each in found] in ([], [False])


def test_value_made_unnecessary_by_chosen_value_is_not_chosen() -> None:
    cells = notebook("raw = load()", "x = clean(raw)", "train(x)", selected=2)
    found = offers(cells, kernel(raw=array(900), x=array(10)), {0: 300.0, 1: 60.0})
    assert [(each.names, each.chosen) for each in found if each.chosen] == [(("x",), True)]
