"""Installs and display magics are removed from jobs, also as the calls that IPython records."""

from __future__ import annotations

import ast

import pytest

from benchpool.cells import magics
from benchpool.magic import cells_of

AS_WRITTEN = {
    "get_ipython().run_line_magic('pip', 'install einops')": "einops",
    "get_ipython().run_line_magic('pip', 'install -q einops')": "einops",
    "get_ipython().run_line_magic('conda', 'install einops')": "einops",
    "get_ipython().system('pip install einops')": "einops",
    "get_ipython().system('{sys.executable} -m pip install einops')": "einops",
    "get_ipython().system('uv pip install einops')": "einops",
    "if 1:\n    get_ipython().run_line_magic('pip', 'install einops')": "einops",
    "get_ipython().run_line_magic(\n    'pip',\n    'install einops',\n)": "einops",
    "get_ipython().run_line_magic('pip', 'install einops')  # new": "einops",
    "get_ipython().run_line_magic('matplotlib', 'inline')": None,
    "get_ipython().run_line_magic('load_ext', 'autoreload')": None,
}


@pytest.mark.parametrize("source", AS_WRITTEN)
def test_magic_as_call_is_removed_like_magic(source: str) -> None:
    read = magics.read(f"x = 1\n{source}\ny = 2")
    assert "get_ipython" not in ast.unparse(ast.parse(read.run))
    assert read.run.count("\n") == source.count("\n") + 2
    assert read.run.count("pass  # left out by benchpool: ") == 1
    assert read.tree is not None
    assert "get_ipython" not in ast.unparse(read.tree)
    packages, line = AS_WRITTEN[source], 2 + source.startswith("if")
    notes = [(note.level, note.text.partition(" is left out")[0], note.line) for note in read.notes]
    assert notes == ([("warning", f"the installation of {packages}", line)] if packages else [])


@pytest.mark.parametrize(
    "source",
    [
        "x = get_ipython().run_line_magic('pip', 'list')",
        "get_ipython().run_line_magic('run', 'train.py')",
        "get_ipython().system('pip list')",
        "text = '''\nget_ipython().run_line_magic('pip', 'install x')\n'''",
        "x = 1; get_ipython().run_line_magic('pip', 'install x')",
        "get_ipython().run_cell_magic('time', '', 'x = 1')",
    ],
)
def test_other_ipython_calls_are_kept(source: str) -> None:
    read = magics.read(source)
    assert (read.run, read.notes) == (source, ())


def test_install_below_recorded_cell_magic_is_removed() -> None:
    kept = "get_ipython().run_cell_magic('capture', '', '%pip install einops\\nx = 1\\n')\n"
    (cell, _) = cells_of(["", kept, "%%train"], "print(x)")
    read = magics.read(cell.source)
    assert read.run == "%%capture\npass  # left out by benchpool: %pip install einops\nx = 1\n"
    assert [note.line for note in read.notes] == [2]
