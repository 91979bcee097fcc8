"""Cells with magics print the same in a job as in the notebook; both run in IPython."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchpool_support.cells import chosen

BEFORE = ["x = 'made-of-x'", "n = 3", "rows = [3, 1, 2]", "other = 1", "d = 'sub'"]
LAST = [
    ["!echo {x} $n"],
    ["!echo {rows[0]} $rows {n + 1}"],
    ["!echo $HOME {x} | wc -w"],
    ["!awk 'BEGIN {print 1}' {x}"],
    ["got = !printf '%s\\n' {x} $n\nprint(got)"],
    ["!!echo $x"],
    ["%env MADE={x}\n!echo $MADE"],
    ["%mkdir $d", "%cd -q {d}\nimport os\nprint(os.path.basename(os.getcwd()))"],
    ["mkdir $d", "cd -q $d", "import os\nprint(os.path.basename(os.getcwd()))"],
    ["%time y = sorted(rows)\nprint(y)"],
    ["%%time\ny = sorted(rows)", "print(y)"],
    ["%%capture out\nprint(x)", "print(out.stdout)"],
    ["r = %timeit -q -o -n1 -r1 sorted(rows)", "print(type(r).__name__)"],
    ["%timeit -q -n1 -r1 rows.append(1)", "print(len(rows) > 3)"],
    ["%%timeit -q -n1 -r1 y = list(rows)\ny.append(n)"],
    ["%prun -q -T made.txt y = len(rows)", "print(y)"],
    ['%%bash -s "$x" {n}\necho $1 $2'],
    ["%%bash --out got -s $x\necho $1", "print(got)"],
    ["%%script bash -s {x}\necho $1"],
    ["%%sx --out got\necho {x}", "print(got)"],
    ["%%writefile made.py\nz = 42\nprint(z)", "!python made.py"],
    ["%%writefile made.py\nz = 42", "%run made.py\nprint(z)"],
    ["name = 'made.py'", "%%writefile {name}\nprint(42)", "%%bash\npython made.py"],
    ["%%writefile made.py\nprint(1)", "%%writefile -a made.py\nprint(2)", "!python made.py"],
    ["%%writefile made.py\nprint(1)", "%%writefile made.py\nprint(2)", "!python made.py"],
    ["!mkdir -p {d}/deep", "open(d + '/deep/a', 'w').write('1')\n!ls {d}/deep"],
    ["get_ipython().system('echo {x}')"],
    ["get_ipython().run_line_magic('time', 'y = n')", "print(y)"],
    ["def f(x):\n    !echo {x} $n", "f(7)"],
]
RUNNER = """
import contextlib, io, json, os, re, sys, tempfile
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.history_manager.enabled = False
answers = []
for cells in json.load(sys.stdin):
    os.environ.pop("MADE", None)
    shell.reset(new_session=False)
    os.chdir(tempfile.mkdtemp(dir=sys.argv[1]))
    said = ""
    for cell in cells:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            result = shell.run_cell(cell)
        assert result.success, (cell, result.error_in_exec)
        said = out.getvalue()
    answers.append(re.sub(r"(?:CPU times|Wall time)[^\\n]*", "", said))
print(json.dumps(answers), file=sys.__stdout__)
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, bool], str]:
    """Return the output of the last cell, by its number and whether the whole notebook ran."""
    place: Path = tmp_path_factory.mktemp("runs")
    whole = [[*BEFORE, *cells] for cells in LAST]
    part = [[one.run for one in chosen(*cells).cells if one.included] for cells in whole]
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, str(place)],
        input=json.dumps([*whole, *part]),
        env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(place)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    answers = json.loads(done.stdout.splitlines()[-1])
    count = len(LAST)
    return {(n % count, n < count): text for n, text in enumerate(answers)}


@pytest.mark.parametrize("number", range(len(LAST)), ids=[cells[-1] for cells in LAST])
def test_included_cells_print_same_as_notebook(
    number: int, printed: dict[tuple[int, bool], str]
) -> None:
    assert printed[number, False] == printed[number, True]
    taken = [one.index for one in chosen(*BEFORE, *LAST[number]).cells if one.included]
    assert BEFORE.index("other = 1") not in taken
