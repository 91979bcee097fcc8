"""The cells that go along are those that are needed, and each says why."""

from __future__ import annotations

import ast
import importlib
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchpool.cells import CellSelection, NotebookCell, choose


def chosen(*sources: str, select: int | tuple[int, ...] = -1) -> CellSelection:
    """Choose among cells by source; the last one is selected unless said otherwise."""
    wanted = (select,) if isinstance(select, int) else select
    numbers = {number % len(sources) for number in wanted}
    return choose(
        [NotebookCell(f"c{n}", text, selected=n in numbers) for n, text in enumerate(sources)],
    )


def included(selection: CellSelection) -> list[int]:
    return [each.index for each in selection.cells if each.included]


CASES: dict[str, tuple[list[str], list[int]]] = {
    "imports and definitions that are read": (
        ["import numpy as np", "import os", "x = np.ones(3)", "y = 2", "print(x)"],
        [0, 2, 4],
    ),
    "definitions of definitions": (["a = 1", "b = a + 1", "c = b + 1", "d = 5", "c"], [0, 1, 2, 4]),
    "only the nearest sure definition": (["x = 1", "x = 2", "print(x)"], [1, 2]),
    "a definition from itself needs the one before": (
        ["x = 1", "x = x + 1", "print(x)"],
        [0, 1, 2],
    ),
    "a definition in a branch and the one before it": (
        ["x = 1", "flag = 0\nif flag:\n    x = 2", "print(x)"],
        [0, 1, 2],
    ),
    "both branches define, so nothing before is needed": (
        ["x = 1", "import os\nif os.sep:\n    x = 2\nelse:\n    x = 3", "print(x)"],
        [1, 2],
    ),
    "in-place change by item": (["d = {}", "d['a'] = 1", "e = 1", "print(d)"], [0, 1, 3]),
    "in-place change by attribute": (
        ["class C: pass", "c = C()", "c.x = 1", "print(c.x)"],
        [0, 1, 2, 3],
    ),
    "in-place change by a method": (["l = []", "l.append(1)", "print(l)"], [0, 1, 2]),
    "in-place change by operator": (["n = 1", "n += 1", "print(n)"], [0, 1, 2]),
    "a method that trains": (
        ["from m import Model", "model = Model()", "model.fit(1)", "model.predict(2)"],
        [0, 1, 2, 3],
    ),
    "looking at data is no change": (
        ["import pandas as pd", "df = pd.DataFrame()", "df.head()", "print(df)", "len(df)", "df"],
        [0, 1, 5],
    ),
    "plots are no change": (
        ["import matplotlib.pyplot as plt", "losses = [1]", "plt.plot(losses)", "sum(losses)"],
        [1, 3],
    ),
    "an unknown function may change what it is given": (
        ["from m import mix", "data = []", "mix(data)", "print(data)"],
        [0, 1, 2, 3],
    ),
    "a function of the notebook that only reads": (
        ["def show(d):\n    print(d[0])", "data = [1]", "show(data)", "print(data)"],
        [1, 3],
    ),
    "a function of the notebook that changes its argument": (
        ["def mix(d):\n    d.append(1)", "data = []", "mix(data)", "print(data)"],
        [0, 1, 2, 3],
    ),
    "only the changed argument counts": (
        [
            "def train(m, d):\n    m.w = d[0]",
            "data = [1]",
            "class M: pass\na = M()",
            "b = M()",
            "train(b, data)",
            "train(a, data)\nprint(a.w)",
        ],
        [0, 1, 2, 5],
    ),
    "a change through a call of a call": (
        [
            "def inner(d):\n    d.clear()",
            "def outer(x):\n    inner(x)",
            "data = [1]",
            "outer(data)",
            "print(data)",
        ],
        [0, 1, 2, 3, 4],
    ),
    "a change through another name": (
        ["a = []", "b = a", "b.append(1)", "print(a)"],
        [0, 1, 2, 3],
    ),
    "an optimiser changes its model": (
        [
            "import torch\nfrom m import Net",
            "net = Net()",
            "opt = torch.optim.SGD(net.parameters())",
            "opt.step()",
            "unused = 1",
            "print(net)",
        ],
        [0, 1, 2, 3, 5],
    ),
    "a function needs its outer names where it is called": (
        ["rate = 1", "def f():\n    return rate", "other = 2", "f()"],
        [0, 1, 3],
    ),
    "outer names may stand below the function": (
        ["def f():\n    return rate", "rate = 1", "f()"],
        [0, 1, 2],
    ),
    "functions of functions": (
        ["k = 1", "def f():\n    return k", "def g():\n    return f()", "g()"],
        [0, 1, 2, 3],
    ),
    "a function that sets a global": (
        ["n = 0", "def up():\n    global n\n    n = 5", "up()", "print(n)"],
        [0, 1, 2, 3],
    ),
    "decorators, defaults, bases, annotations": (
        [
            "import functools",
            "size = 3",
            "class Base: pass",
            "@functools.cache\ndef f(n: int = size): return n",
            "class D(Base):\n    x = f()",
            "D.x",
        ],
        [0, 1, 2, 3, 4, 5],
    ),
    "methods need outer names": (
        ["import math", "class C:\n    def m(self):\n        return math.pi", "c = C()", "c.m()"],
        [0, 1, 2, 3],
    ),
    "comprehensions keep their names": (
        ["i = 5", "xs = [1]", "print([i for i in xs])"],
        [1, 2],
    ),
    "seeds, environment and path always go along": (
        [
            "import os, random, sys",
            "os.environ['A'] = '1'",
            "random.seed(0)",
            "sys.path.append('lib')",
            "unused = 1",
            "print(1)",
        ],
        [0, 1, 2, 3, 5],
    ),
    "star imports always go along": (["from numpy import *", "print(zeros(3))"], [0, 1]),
    "a seed inside a function": (
        [
            "import random",
            "def fix():\n    random.seed(1)",
            "fix()",
            "unused = 1",
            "print(1)",
        ],
        [0, 1, 2, 4],
    ),
    "deleting is not defining": (["x = 1", "x = 2\ndel x", "y = 1", "print(y)"], [2, 3]),
    "try and except both define": (
        ["try:\n    import a as lib\nexcept ImportError:\n    lib = None", "print(lib)"],
        [0, 1],
    ),
    "with binds": (["import io", "with io.StringIO() as f:\n    x = 1", "print(x)"], [0, 1, 2]),
    "timed cells count": (["%%time\nx = 1", "%time y = x", "print(y)"], [0, 1, 2]),
    "top-level await is read": (
        ["import asyncio", "await asyncio.sleep(0)"],
        [0, 1],
    ),
    "directory changes go along": (["%cd data", "unused = 1", "print(1)"], [0, 2]),
    "shell cells stay away": (["%%bash\necho hi", "print(1)"], [1]),
    "callbacks held by an object": (
        [
            "from m import Trainer",
            "k = 1",
            "def cb():\n    return k",
            "t = Trainer(cb)",
            "t.fit()",
        ],
        [0, 1, 2, 3, 4],
    ),
    "a global that is set by a function of a function": (
        ["def a():\n    global n\n    n = 5", "def b():\n    a()", "b()", "print(n)"],
        [0, 1, 2, 3],
    ),
    "functions that need what stands further down": (
        ["def a():\n    return b()", "handlers = [a]", "def b():\n    return 1", "handlers[0]()"],
        [0, 1, 2, 3],
    ),
    "inner functions with nonlocal": (
        ["def a():\n    n = 0\n    def b():\n        nonlocal n\n        n += 1\n    b()", "a()"],
        [0, 1],
    ),
    "a name that may be missing": (
        ["try:\n    once\nexcept NameError:\n    once = 1", "print(once)"],
        [0, 1],
    ),
    "walrus and match bind": (
        [
            "if (n := 3) > 2: pass",
            "match n:\n    case [a, *rest]: pass\n    case b: pass",
            "print(n)",
        ],
        [0, 2],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_cells_that_go_along_are(name: str) -> None:
    sources, wanted = CASES[name]
    answer = chosen(*sources)
    assert included(answer) == wanted
    assert [each for each in answer.problems if each.level == "error"] == []


def test_each_cell_says_why() -> None:
    answer = chosen("import numpy", "m = numpy.ones(1)", "m[0] = 3", "x = 1", "print(m)")
    assert [each.why for each in answer.cells] == [
        "imports `numpy`",
        "defines `m`",
        "may change `m`",
        None,
        "selected",
    ]


def test_cells_below_the_selection_never_go_along() -> None:
    assert included(chosen("x = 1", "print(x)", "x = 2", "import os", select=1)) == [0, 1]


def test_markdown_is_not_read() -> None:
    cells = [
        NotebookCell("a", "x = 1", cell_type="markdown"),
        NotebookCell("b", "x = 2"),
        NotebookCell("c", "x", True),
    ]
    assert included(choose(cells)) == [1, 2]


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
        "the install of einops is left out: the job runs in this notebook's environment and finds "
        "what is installed there",
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
        "this cell sends itself with %%train: take that line away, or run the cell instead",
        "c0",
        1,
    ),
    "input": (
        ["x = input()"],
        "error",
        "asks for input, and nobody answers in a job: give the value in the code",
        "c0",
        1,
    ),
    "an earlier output": (
        ["3", "print(_1)"],
        "warning",
        "`_1` is what an earlier cell printed; in a job it may be another",
        "c1",
        1,
    ),
    "nothing selected that runs": (
        ["x = 1", "  "],
        "error",
        "no cell with code is selected: select what the job shall run",
        "",
        None,
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_problem_is_said_with_cell_and_line(name: str) -> None:
    sources, level, text, cell, line = PROBLEMS[name]
    (problem,) = chosen(*sources).problems
    assert (problem.level, problem.text, problem.cell or "", problem.line) == (
        level,
        text,
        cell,
        line,
    )


def test_a_name_defined_below_the_selection_is_named_so() -> None:
    (problem,) = chosen("print(x)", "x = 1", select=0).problems
    assert problem.text == (
        "`x` is used before the cell that defines it, which stands below the selection"
    )


def test_another_order_than_shown_is_said_once() -> None:
    cells = [
        NotebookCell("a", "x = 1", execution_count=7),
        NotebookCell("b", "x", True, execution_count=3),
    ]
    (problem,) = choose(cells).problems
    assert "ran in another order" in problem.text
    assert problem.level == "warning"


@pytest.mark.parametrize(
    ("source", "runs"),
    [
        ("%matplotlib inline\nx = 1", "pass  # left out by benchpool: %matplotlib inline\nx = 1"),
        (
            "!pip install a \\\n  b\nx = 1",
            "pass  # left out by benchpool: !pip install a \\\n"
            "pass  # left out by benchpool: b\nx = 1",
        ),
        (
            "if 1:\n    %pip install a\n%load_ext autoreload\n%autoreload 2",
            "if 1:\n    pass  # left out by benchpool: %pip install a\n"
            "pass  # left out by benchpool: %load_ext autoreload\n"
            "pass  # left out by benchpool: %autoreload 2",
        ),
        ("text = '''\n%matplotlib inline\n'''", "text = '''\n%matplotlib inline\n'''"),
        ("%env A=1", "%env A=1"),
    ],
)
def test_left_out_lines_keep_their_place(source: str, runs: str) -> None:
    assert chosen(source).cells[0].run == runs


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


@settings(max_examples=300, deadline=None)
@given(
    cells=st.lists(st.lists(STATEMENTS, min_size=1, max_size=3), min_size=1, max_size=10),
    watched=st.sampled_from(NAMES),
)
def test_the_chosen_cells_compute_what_the_whole_notebook_does(
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
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(st.lists(PIECES | st.text(max_size=12), max_size=5), st.booleans())))
def test_no_text_can_break_the_analysis(cells: list[tuple[list[str], bool]]) -> None:
    asked = [NotebookCell(str(n), "\n".join(text), yes) for n, (text, yes) in enumerate(cells)]
    answer = choose(asked)
    assert len(answer.cells) == len(asked)
    assert all(each.included for each in answer.cells if each.selected)
    for before, after in zip(asked, answer.cells, strict=True):
        assert before.source.count("\n") == after.run.count("\n")


REAL_CODE = [
    *("argparse", "ast", "calendar", "collections", "dataclasses", "enum", "fractions", "heapq"),
    *("json.decoder", "mimetypes", "pkgutil", "random", "sched", "statistics", "textwrap"),
    *("threading", "traceback", "turtle", "typing", "zipfile"),
]


@pytest.mark.parametrize("module", REAL_CODE)
def test_real_code_gives_no_false_alarm(module: str) -> None:
    """Each top-level statement of a module of Python as a cell: nothing in it is missing."""
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


def test_five_hundred_cells_take_less_than_a_fifth_of_a_second() -> None:
    cells = [
        NotebookCell("i", "import numpy as np\ndef step(m, d):\n    m['w'] += d\n    return m")
    ]
    for n in range(498):
        before = f"m{n - 1}" if n else "{'w': 1}"
        text = (
            f"m{n} = dict({before})\nfor i in range(3):\n    step(m{n}, i)\n"
            f"if m{n}['w'] > 3:\n    print(f'{{i}} of {n}', np.mean([1, 2]))\nv{n} = m{n}['w'] ** 2"
        )
        cells.append(NotebookCell(f"c{n}", text))
    cells.append(NotebookCell("last", "print(v497, m490)", selected=True))
    choose(cells[:10])
    taken = []
    for again in range(5):
        fresh = [
            NotebookCell(each.id, f"{each.source}\n# {again}", each.selected) for each in cells
        ]
        began = time.process_time()
        answer = choose(fresh)
        taken.append(time.process_time() - began)
    assert len(included(answer)) > 400
    assert min(taken) < 0.2
