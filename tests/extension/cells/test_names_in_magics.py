"""Names used and defined by magics and shell commands include their cells."""

from __future__ import annotations

import pytest

from benchpool.cells import KnownBeside, NotebookCell, choose
from benchpool.kernel.answer import KernelAnswer, NameFacts
from benchpool_support.cells import chosen, included

USES = {  # cell after `x = ...`, `y = ...` and `z = ...`: the names it uses
    "!echo {x} $y": "x y",
    "!echo {x['a'][y]}": "x y",
    "!echo $x.name $$y '$z'": "x",
    "!echo $HOME $1 ${PATH} $?": "",
    "!awk '{print $1}' {x}": "",
    "!touch {x,y}.txt": "x y",
    "!touch {1..5}": "",
    "!!ls {x}": "x",
    "files = !ls {x}\nprint(files)": "x",
    "out, = !cat {x} | wc -l": "x",
    "%cd {x}": "x",
    "%cd $x": "x",
    "cd $x": "x",
    "%env OUT={x}": "x",
    "%env OUT=$x": "x",
    "%set_env OUT {x}": "x",
    "%mkdir -p {x}/$y": "x y",
    "%run tool.py --lr {x}": "x",
    "%run -i tool.py": "x y z",
    "%time r = len(x)": "x",
    "%time !ls {x}": "x",
    "%time {1: x}": "x",
    "%timeit -n1 -r 3 -qo sorted(x)": "x",
    "%timeit -n1 -r1 !ls {x}": "x",
    "r = %timeit -o -n 1 sorted(x)": "x",
    "%prun -l 5 -s cumtime x()": "x",
    "%memit -r 1 sum(x)": "x",
    "%lprun -f x -T out y(1)": "x y",
    "%%time\nlen(x)": "x",
    "%%time\n!ls {x}": "x",
    "%%timeit -n1\nsorted(x)": "x",
    "%%timeit w = list(x)\nsorted(w)": "x",
    "%%timeit y = list(x)\nsorted(y)": "x",
    "%%prun -s time\nx()": "x",
    "%%capture out\nprint(x)": "x",
    "%%capture --no-stderr\n!ls $x": "x",
    "%%memit\nsum(x)": "x",
    '%%bash -s "$x" {y}\necho $1 $z': "x y",
    "%%bash --out got -s $x\necho": "x",
    "%%script bash -s {x}\necho $1": "x",
    "%%sh\necho $x {y}": "",
    "%%sx\nls {x}": "x",
    "%%!\nls $x": "x",
    "%%python\nprint(x)": "",
    "%%writefile {x}\ny = 1": "x",
    "%%R -i x,y -o fit\nfit <- x": "x y",
    "%R -i x print(x)": "x",
    "%Rpush x y": "x y",
    "%sql $x": "x",
    "%sql SELECT * FROM y WHERE a > :x": "x y",
    "%%sql\nselect * from x\nwhere a = {{y}}": "x y",
    "%store x y": "x y",
    "%store -r": "",
    "x?": "x",
    "?x": "x",
    "x.name??": "x",
    "%psource x": "x",
    "%%unheard\nlen(x)": "x",
    "%unheard --flag=3 x": "x",
    "get_ipython().system('echo {x}')": "x",
    "get_ipython().system(f'echo {x} $y')": "x y",
    "get_ipython().system('echo {}'.format(x))": "x",
    "got = get_ipython().getoutput('ls $x')": "x",
    "get_ipython().run_line_magic('cd', '{x}')": "x",
    "get_ipython().run_line_magic('time', 'w = x')": "x",
    "get_ipython().run_cell_magic('bash', '-s $x', 'echo')": "x",
    "get_ipython().run_cell_magic('time', '', 'len(x)')": "x",
    "get_ipython().run_cell_magic('capture', 'out', 'len(x)')": "x",
    "ip = get_ipython()\nip.system('echo $x')": "x",
    "if 1:\n    !echo {x}\nelse:\n    %cd {y}": "x y",
    "for i in [1]:\n    !echo $i {x}": "x",
    "def f(y):\n    !echo {x} $y\nf(1)": "x",
    "class A:\n    got = !echo {x}": "x",
    "class A:\n    !echo $HOME\n    def f(self):\n        !echo $HOME": "",
    "[get_ipython().getoutput('ls {y}') for y in [x]]": "x",
    "!echo one\\\n  {x}": "x",
    "\n\n!echo {x}": "x",
}


@pytest.mark.parametrize("source", USES)
def test_names_used_in_magics_include_their_cells(source: str) -> None:
    names = ["x", "y", "z"]
    found = chosen(*[f"{name} = open('{name}').read()" for name in names], source)
    assert [names[n] for n in included(found) if n < 3] == USES[source].split()
    assert [each for each in found.problems if each.level == "error"] == []


BINDS = {
    "got = !ls": "got",
    "%%capture got\nprint(1)": "got",
    "%%bash --out got --err err\nls": "got err",
    "%%script --out=got bash\nls": "got",
    "%%sx --out got\nls": "got",
    "%%time\ngot = 1": "got",
    "%time got = 1": "got",
    "%time import os": "os",
    "%prun got = 1": "got",
    "%%prun\ngot = 1": "got",
    "got = %timeit -o -n1 1": "got",
    "%timeit -n1 -v got 1": "got",
    "%%R -o got,more\n1": "got more",
    "%Rpull got": "got",
    "%sql got << select 1": "got",
    "%%sql got <<\nselect 1": "got",
    "%%bigquery got --params 1\nselect 1": "got",
    "%store -r got": "got",
    "%macro got 1-3": "got",
    "%%cython\ncpdef int got(int n): return n\ncdef class More: pass": "got More",
    "%%cython -a\nimport numpy as got\ndef more(): pass": "got more",
    "%%unheard\ngot = 1": "got",
    "get_ipython().run_line_magic('time', 'got = 1')": "got",
    "get_ipython().run_cell_magic('bash', '--out got', 'ls')": "got",
}


@pytest.mark.parametrize("source", BINDS)
def test_magic_defining_used_name_is_included(source: str) -> None:
    names = BINDS[source].split()
    found = chosen(source, f"print({', '.join(names)})")
    assert included(found) == [0, 1]
    assert [each for each in found.problems if each.level == "error"] == []
    assert included(chosen(source, "print(1)")) == [1]


@pytest.mark.parametrize("source", ["%timeit w = 1", "%%timeit w = 1\nw", "!w=1", "%%bash\nw=1"])
def test_magic_does_not_define_internal_names(source: str) -> None:
    (problem,) = [each for each in chosen(source, "print(w)").problems if each.level == "error"]
    assert problem.text == "`w` is defined in no cell of this notebook"


@pytest.mark.parametrize(
    "source",
    [
        "%time f(missing)",
        "%timeit -n1 f(missing)",
        "%%timeit\nf(missing)",
        "!echo $missing\nprint(missing)",
        "print(missing)\n!echo {missing}",
        "try:\n    missing\nexcept NameError:\n    pass\nprint(missing)",
        "def a():\n    !echo $missing\ndef b():\n    return missing\na(), b()",
        "def a():\n    !echo $missing\n    f(missing)\na()",
        "def a():\n    sorted(missing)\na()",
    ],
)
def test_undefined_name_in_code_beside_magic_is_missing(source: str) -> None:
    found = chosen("f = len", source).problems
    assert [each.text for each in found if each.level == "error"] == [
        "`missing` is defined in no cell of this notebook"
    ]


def test_name_passed_to_other_language_must_be_defined() -> None:
    found = chosen("%%R -i missing\n1").problems
    assert "`missing` is defined in no cell of this notebook" in [each.text for each in found]


def unchanged(field: str, name: str = "x") -> str:
    return (
        f"`{name}` is defined in no cell above, so the job runs the line with `{field}` unchanged; "
        f"define `{name}` in a cell above"
    )


def test_undefined_name_in_braces_is_reported_with_line() -> None:
    (problem,) = chosen("y = 1", "y\n!echo {x} {y}").problems
    assert (problem.level, problem.text, problem.cell, problem.line) == (
        "warning",
        unchanged("{x}"),
        "c1",
        2,
    )
    (problem,) = chosen("def f():\n    %cd {x}\nf()").problems
    assert problem.text == unchanged("{x}")


def test_undefined_dollar_name_is_reported() -> None:
    assert [each.text for each in chosen("!echo $x", "x = 1", select=0).problems] == [
        unchanged("$x")
    ]
    cells = [NotebookCell("a", "!echo $x", selected=True)]
    assert choose(cells).problems == ()
    facts = NameFacts(1, "builtins.int", True, True, 28, None, None, None, [])
    answer = KernelAnswer({"x": facts}, ["x = 1"], 1, 0.0)
    problems = [each.text for each in choose(cells, seen=KnownBeside(kernel=answer)).problems]
    assert unchanged("$x") in problems


@pytest.mark.parametrize("call", ["%shout x", "%%shout x\n1", "r = %shout x"])
def test_notebook_magic_includes_its_function(call: str) -> None:
    before = "from IPython.core import magic"
    made = "@magic.register_line_cell_magic\ndef shout(line, cell=None):\n    print(line)"
    assert included(chosen(before, made, "x = 1", "y = 1", call)) == [0, 1, 2, 4]


def test_install_below_cell_magic_is_removed_and_reported() -> None:
    found = chosen("%%time\n!pip install a\nx = 1")
    assert found.cells[0].run == ("%%time\npass  # left out by benchpool: !pip install a\nx = 1")
    assert [each.text.partition(":")[0] for each in found.problems] == [
        "the installation of a is left out"
    ]
