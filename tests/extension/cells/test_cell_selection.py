"""Selection of the cells that a job needs, and the reason of each."""

from __future__ import annotations

import pytest

from benchpool.cells import NotebookCell, choose
from benchpool_support.cells import chosen, included

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
    "a trainer trains the model that it is given": (
        [
            "import lightning",
            "from m import Lit",
            "model = Lit()",
            "trainer = lightning.Trainer()",
            "trainer.fit(model)",
            "print(model)",
        ],
        [0, 1, 2, 3, 4, 5],
    ),
    "settings of plots and of jax go along": (
        [
            "import jax\nimport matplotlib.pyplot as plt",
            "plt.rc('font', size=14)",
            "jax.config.update('jax_enable_x64', True)",
            "print(jax, plt)",
        ],
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
def test_needed_cells_are_included(name: str) -> None:
    sources, wanted = CASES[name]
    answer = chosen(*sources)
    assert included(answer) == wanted
    assert [each for each in answer.problems if each.level == "error"] == []


def test_included_cell_states_its_reason() -> None:
    answer = chosen("import numpy", "m = numpy.ones(1)", "m[0] = 3", "x = 1", "print(m)")
    assert [each.why for each in answer.cells] == [
        "imports `numpy`",
        "defines `m`",
        "may change `m`",
        None,
        "selected",
    ]


def test_cells_below_selection_are_never_included() -> None:
    assert included(chosen("x = 1", "print(x)", "x = 2", "import os", select=1)) == [0, 1]


def test_markdown_is_not_analysed() -> None:
    cells = [
        NotebookCell("a", "x = 1", cell_type="markdown"),
        NotebookCell("b", "x = 2"),
        NotebookCell("c", "x", True),
    ]
    assert included(choose(cells)) == [1, 2]


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
def test_removed_lines_keep_line_numbers(source: str, runs: str) -> None:
    assert chosen(source).cells[0].run == runs
