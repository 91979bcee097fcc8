"""The kernel's answers exclude suspected cells without losing a needed cell."""

from __future__ import annotations

import contextlib
import io
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchpool.cells import CellSelection, KnownBeside, NotebookCell, choose, expressions, names_of
from benchpool.kernel import question
from benchpool.kernel.answer import KernelAnswer, NameFacts
from benchpool_support.cell_corpus import Text, compared, texts, traces


def array(*shares: str) -> NameFacts:
    return NameFacts(1, "numpy.ndarray", False, True, 80, [10], None, None, [*shares])


def asked(cells: list[str], names: dict[str, NameFacts], ran: list[str] | None = None) -> list[int]:
    """Return the included cells when the last one is sent."""
    given_cells = [
        NotebookCell(str(at), text, at == len(cells) - 1) for at, text in enumerate(cells)
    ]
    kernel = KernelAnswer(names, cells[:-1] if ran is None else ran, 1, 0.0)
    return included(choose(given_cells, seen=KnownBeside(kernel)))


def included(found: CellSelection) -> list[int]:
    return [each.index for each in found.cells if each.included]


NUMBER = NameFacts(1, "builtins.int", True, True, 28, None, None, None, [])
TEXT = NameFacts(1, "builtins.str", True, True, 50, None, None, None, [])
OF_A_NUMBER = ["import mine", "rate = 3", "mine.show(rate)", "print(rate)"]
OF_ARRAYS = ["import mine", "x = mine.load()", "y = mine.scaled(x)", "mine.mix(y)", "print(x)"]


def test_number_is_not_changed_by_functions() -> None:
    assert included(choose(
        [NotebookCell(str(at), text, at == 3) for at, text in enumerate(OF_A_NUMBER)]
    )) == [0, 1, 2, 3]  # fmt: skip
    assert asked(OF_A_NUMBER, {"rate": NUMBER}) == [1, 3]


def test_string_may_name_changed_file() -> None:
    cells = ["import mine", "rate = 'a.csv'", *OF_A_NUMBER[2:]]
    assert asked(cells, {"rate": TEXT}) == [0, 1, 2, 3]


def test_global_rebinding_function_is_included() -> None:
    cells = ["n = 0", "def up():\n    global n\n    n += 1", "up()", "print(n)"]
    assert asked(cells, {"n": NUMBER}) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "ran",
    [
        [],
        ["import mine", "rate = 4", "mine.show(rate)"],
        ["import mine", "rate = 3", "mine.show(rate)", "rate = 5"],
        ["import mine", "mine.show(rate)"],
    ],
)
def test_name_made_by_other_code_proves_nothing(ran: list[str]) -> None:
    assert asked(OF_A_NUMBER, {"rate": NUMBER}, ran) == [0, 1, 2, 3]


def test_sources_of_name_must_match_code() -> None:
    cells = ["import mine", "xs = [[1]]", "x = xs[0]", "mine.mix(xs)", "print(x)"]
    older = ["import mine", "xs = [1]", "x = xs[0]", "mine.mix(xs)"]
    assert asked(cells, {"x": NUMBER}, older) == [0, 1, 2, 3, 4]


def test_arrays_without_shared_memory_are_independent() -> None:
    assert asked(OF_ARRAYS, {"x": array(), "y": array()}) == [0, 1, 2, 4]
    assert asked(OF_ARRAYS, {"x": array("y"), "y": array("x")}) == [0, 1, 2, 3, 4]


def test_sharing_history_of_lists_is_unknown() -> None:
    xs = NameFacts(1, "builtins.list", False, True, 80, None, 1, None, [])
    assert asked(OF_ARRAYS, {"x": xs, "y": xs}) == [0, 1, 2, 3, 4]


def test_corpus_with_kernel_answers_never_differs_silently() -> None:
    every = list(compared(with_kernel=True))
    lost = [(one.text.name, one.selected) for one in every if one.verdict == "silently different"]
    assert lost == []


# ------------------------------------------------------------------ random histories

_SAFE = {"collections", "contextlib", "copy", "dataclasses", "functools", "itertools", "operator"}
_OUTSIDE = re.compile(
    r"\basync |\bawait |\bopen\(|input\(|%|\b_\b|sys|os\.|Path|import_module|__main__|builtins"
)


def is_safe(text: Text) -> bool:
    """Return whether a text may run in this process repeatedly and in any order."""
    source = "\n".join(text.cells)
    lines = re.findall(r"(?:^|;)\s*(?:import (.+)|from (\w+))", source, re.M)
    imported = {word for plain, module in lines for word in re.findall(r"\w+", plain or module)}
    if text.is_notebook or not imported <= _SAFE or _OUTSIDE.search(source) is not None:
        return False
    return all(expressions.parses(each) for each in text.cells)


SAFE = [text for text in texts() if is_safe(text)]


@st.composite
def histories(draw: st.DrawFn) -> tuple[Text, list[str]]:
    """Draw a text and a history: its cells in any order, repeated, mixed with older versions."""
    text = draw(st.sampled_from(SAFE))
    above = text.cells[:-1]
    straight = list(above)
    number = "\n".join(re.findall(r"^\w+ = .*$", "\n".join(above), re.M))
    older = [re.sub(r"= .*", "= 1", each) for each in number.split("\n") if each]
    ran = draw(st.lists(st.sampled_from([*above, *older]), max_size=6))
    return text, draw(st.sampled_from([[*ran, *straight], [*straight, *ran], ran]))


def kernel_of(text: Text, ran: list[str]) -> KernelAnswer:
    """Run texts in order and return the kernel's answer."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for source in ran:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(*FAILS):
            exec(source, namespace)  # noqa: S102 (our own texts)
    cells = [NotebookCell(str(at), source) for at, source in enumerate(text.cells)]
    return question.of_this_process(namespace, ["", *ran], names_of(cells))


FAILS = (NameError, TypeError, AttributeError, LookupError, ValueError, StopIteration,
         RuntimeError, AssertionError)  # fmt: skip


def test_corpus_has_enough_safe_texts() -> None:
    assert len(SAFE) >= 60


@settings(max_examples=150, deadline=None)
@given(histories())
def test_needed_cells_are_kept_for_any_history(drawn: tuple[Text, list[str]]) -> None:
    text, ran = drawn
    last = len(text.cells) - 1
    cells = [NotebookCell(str(at), source, at == last) for at, source in enumerate(text.cells)]
    taken = included(choose(cells, seen=KnownBeside(kernel_of(text, ran))))
    assert traces()[text.name].needs[last] <= {*taken}
