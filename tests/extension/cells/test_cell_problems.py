"""Problems that are reported before sending, with cell and line."""

from __future__ import annotations

import pytest

from benchpool.cells import NotebookCell, choose
from benchpool_support.cells import chosen

PROBLEMS: dict[str, tuple[list[str], str, str, str, int | None]] = {
    "a name defined nowhere": (
        ["model = 1", "print(1)\nprint(modle)"],
        "error",
        "`modle` is defined in no cell of this notebook; did you mean `model`?",
        "c1",
        2,
    ),
    "a name in a called function": (
        ["def f():\n    return missing", "f()"],
        "error",
        "`missing` is defined in no cell of this notebook",
        "c0",
        2,
    ),
    "a name in a function that nobody calls": (
        ["def f():\n    return missing\nx = 1", "print(x)"],
        "warning",
        "`missing` is defined in no cell of this notebook",
        "c0",
        2,
    ),
    "a star import may define it": (
        ["from m import *", "print(thing)"],
        "warning",
        "`thing` is defined in no cell; it must come from `from m import *`",
        "c1",
        1,
    ),
    "text that is not Python": (
        ["x = = 1"],
        "error",
        "this is not Python: invalid syntax",
        "c0",
        1,
    ),
    "an install": (
        ["%pip install -q einops\nimport einops"],
        "warning",
        "the installation of einops is left out: the job has the packages of its own environment "
        "(on one machine that of this notebook, on a cluster its image)",
        "c0",
        1,
    ),
    "a shell cell": (
        ["%%bash\nls"],
        "warning",
        "%%bash runs again in the job, with this machine's tools",
        "c0",
        1,
    ),
    "our own magic": (
        ["%%train --gpus 2\nx = 1"],
        "error",
        "this cell sends itself with %%train: remove that line, or run the cell instead",
        "c0",
        1,
    ),
    "input": (
        ["x = input()"],
        "error",
        "asks for input, which a job cannot get: set the value in the code",
        "c0",
        1,
    ),
    "an earlier output": (
        ["3", "print(_1)"],
        "warning",
        "`_1` is the output of an earlier cell; in a job it may differ",
        "c1",
        1,
    ),
    "nothing selected that runs": (
        ["x = 1", "  "],
        "error",
        "no cell with code is selected: select the cells to run",
        "",
        None,
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_problem_names_cell_and_line(name: str) -> None:
    sources, level, text, cell, line = PROBLEMS[name]
    (problem,) = chosen(*sources).problems
    assert (problem.level, problem.text, problem.cell or "", problem.line) == (
        level,
        text,
        cell,
        line,
    )


@pytest.mark.parametrize(
    "loads", ["%load_ext benchpool", "get_ipython().run_line_magic('load_ext', 'benchpool')"]
)
def test_loading_own_extension_defines_no_names(loads: str) -> None:
    """A session keeps its cells as IPython has translated them."""
    (problem,) = chosen(loads, "print(thing)").problems
    assert problem.text == "`thing` is defined in no cell of this notebook"


def test_name_defined_below_selection_is_reported() -> None:
    (problem,) = chosen("print(x)", "x = 1", select=0).problems
    assert problem.text == (
        "`x` is used before the cell that defines it, which is below the selection"
    )


def test_different_execution_order_is_reported_once() -> None:
    cells = [
        NotebookCell("a", "x = 1", execution_count=7),
        NotebookCell("b", "x", True, execution_count=3),
    ]
    (problem,) = choose(cells).problems
    assert "ran in a different order" in problem.text
    assert problem.level == "warning"
