"""Properties of the cell selection for arbitrary cells.

A job computes what the notebook would, the analysis accepts any text, and its work grows linearly.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchpool.cells import NotebookCell, choose
from benchpool_support.cells import chosen, included
from benchpool_support.examples import examples

NAMES = ["a", "b", "c", "d"]
STATEMENTS = st.one_of(
    st.builds("{} = []".format, st.sampled_from(NAMES)),
    st.builds("{} = list({})".format, st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.builds("{} = {}".format, st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.builds("{}.append({})".format, st.sampled_from(NAMES), st.integers(0, 9)),
    st.builds("{} += [{}]".format, st.sampled_from(NAMES), st.integers(0, 9)),
    st.builds("for i in [*{}, 1]: {} = [i]".format, st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.builds("if len({}) > 1: {} = [7]".format, st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.builds("push({}, {})".format, st.sampled_from(NAMES), st.integers(0, 9)),
    st.builds("grow({})".format, st.integers(0, 9)),
    st.builds("twice({})".format, st.integers(0, 9)),
    st.builds("{} = Box({}).inner".format, st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.builds("Box({}).put({})".format, st.sampled_from(NAMES), st.integers(0, 9)),
    st.builds("hold = [grow, {}]\nhold[0](1)".format, st.sampled_from(NAMES)),
    st.builds(
        "{0} = [len({1}), *{2}]".format,
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
    ),
)
PREPARED = [
    "a = [0]\nb = [0]\nc = [0]\nd = [0]",
    "def push(target, value):\n    inner = target\n    inner.append(value)",
    "def grow(value):\n    push(a, value)\n    b.append(len(c))",
    "def twice(value):\n    global d\n    grow(value)\n    d = [value]",
    "class Box:\n    def __init__(self, inner):\n        self.inner = inner\n"
    "    def put(self, value):\n        self.inner.append(value)",
]


@settings(max_examples=examples(300), deadline=None)
@given(
    cells=st.lists(st.lists(STATEMENTS, min_size=1, max_size=3), min_size=1, max_size=10),
    watched=st.sampled_from(NAMES),
)
def test_selected_cells_compute_same_result_as_notebook(
    cells: list[list[str]], watched: str
) -> None:
    sources = [*PREPARED, *["\n".join(each) for each in cells], f"result = {watched}"]
    answer = chosen(*sources)
    whole: dict[str, object] = {}
    exec("\n".join(sources), whole)  # noqa: S102
    part: dict[str, object] = {}
    exec("\n".join(each.run for each in answer.cells if each.included), part)  # noqa: S102
    assert part["result"] == whole["result"]


PIECES = st.sampled_from(
    [
        *(
            "%%time",
            "%%",
            "!ls $x {y}",
            "x = !ls",
            "%cd ..",
            "?x",
            "x?",
            "\\",
            "'''",
            '"',
            "(",
            ")",
        ),
        *("x = 1", "    ", "\t", "def f(", "lambda: x", "await y", "async for a in b: pass", "\0"),
        *(
            "match x:",
            "    case {'a': b, **c}: pass",
            "del x",
            "x: int",
            "@a",
            "*x, y = z",
            "\ud800",
        ),
        *("%pip install \\", "%run a.py", "%time x = y", "f'{x!r:{w}}'", "é = 1", "\u2028", "\r"),
        *("%%bash -s {x}", "%%writefile {y}", "%%heard x", "%sql {{x", "%timeit -n", "cd $x"),
        *("%time %time %ls {x", "!mkdir {x", "get_ipython().system(x)", "%%timeit -n1 x", "%%R -i"),
        *("%lprun -f x y", "ip.run_line_magic('time', x)", "!curl -o", "!git clone", "%store -r x"),
        *("%%sx > a\n!ls '", "%%cython\ncdef class", "%xdel x", "%%file", "%%prun x = 1", "!$"),
    ]
)


@settings(max_examples=examples(400), deadline=None)
@given(st.lists(st.tuples(st.lists(PIECES | st.text(max_size=12), max_size=5), st.booleans())))
def test_analysis_accepts_any_text(cells: list[tuple[list[str], bool]]) -> None:
    asked = [NotebookCell(str(n), "\n".join(text), yes) for n, (text, yes) in enumerate(cells)]
    answer = choose(asked)
    assert len(answer.cells) == len(asked)
    assert all(each.included for each in answer.cells if each.selected)
    for before, after in zip(asked, answer.cells, strict=True):
        assert before.source.count("\n") == after.run.count("\n")


# Modules that define names by statements only. calendar is left out: since Python 3.12 it defines
# names by an enum.
REAL_CODE = [
    *("argparse", "ast", "shlex", "collections", "dataclasses", "enum", "fractions", "heapq"),
    *("json.decoder", "mimetypes", "pkgutil", "random", "sched", "statistics", "textwrap"),
    *("threading", "traceback", "turtle", "typing", "zipfile"),
]


@pytest.mark.parametrize("module", REAL_CODE)
def test_analysis_of_stdlib_modules_reports_no_missing_names(module: str) -> None:
    """Use each top-level statement of a standard module as a cell."""
    path = importlib.import_module(module).__file__
    assert path is not None
    text = Path(path).read_text("utf-8")
    lines, sources = text.split("\n"), []
    for statement in ast.parse(text).body:
        decorators = getattr(statement, "decorator_list", [])
        first = min([statement.lineno, *[each.lineno for each in decorators]])
        sources.append("\n".join(lines[first - 1 : statement.end_lineno]))
    answer = chosen(*sources, select=tuple(range(len(sources))))
    assert [each for each in answer.problems if each.level == "error"] == []


def many_cells(number: int) -> list[NotebookCell]:
    cells = [
        NotebookCell("i", "import numpy as np\ndef step(m, d):\n    m['w'] += d\n    return m")
    ]
    for n in range(number - 2):
        before = f"m{n - 1}" if n else "{'w': 1}"
        text = (
            f"m{n} = dict({before})\nfor i in range(3):\n    step(m{n}, i)\n"
            f"if m{n}['w'] > 3:\n    print(f'{{i}} of {n}', np.mean([1, 2]))\nv{n} = m{n}['w'] ** 2"
            f"  # of {number}: what was read of other cells helps nothing"
        )
        cells.append(NotebookCell(f"c{n}", text))
    last = number - 3
    return [*cells, NotebookCell("last", f"print(v{last}, m{last - 7})", selected=True)]


def calls_of_a_choice(number: int) -> int:
    """Return the number of Python function calls in a selection among ``number`` cells."""
    cells, calls = many_cells(number), itertools.count()

    def count(frame: object, event: str, arg: object) -> None:
        if event == "call":
            next(calls)

    sys.setprofile(count)
    try:
        answer = choose(cells)
    finally:
        sys.setprofile(None)
    assert len(included(answer)) > 0.8 * number
    return next(calls)


def test_analysis_work_grows_linearly_with_cells() -> None:
    choose(many_cells(10))  # fill the caches
    few, many = calls_of_a_choice(250), calls_of_a_choice(500)
    assert many < 2.3 * few, (few, many)
