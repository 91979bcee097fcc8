"""``benchpool submit`` warns before upload about code that is likely to fail in a job."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from nbformat import v4, writes

from benchpool_scheduler import cli

pytestmark = pytest.mark.slow

Benchpool = Callable[..., Any]

USES = """\
import sys
sys.path.append('../common')
import helper_fn
print('got', helper_fn.f() + int(open('../data/x.csv').read()))
"""


@pytest.fixture
def repo(folder: Path) -> Path:
    for name in ("notebooks", "data", "common"):
        (folder / name).mkdir()
    (folder / "data" / "x.csv").write_text("1\n")
    (folder / "common" / "helper_fn.py").write_text("def f(): return 7\n")
    (folder / "notebooks" / "use.py").write_text(USES)
    (folder / "notebooks" / "use.ipynb").write_text(
        writes(v4.new_notebook(cells=[v4.new_code_cell(USES)]))
    )
    return folder


@pytest.mark.parametrize(("name", "where"), [("use.py", "use.py"), ("use.ipynb", "cell 1")])
def test_files_above_folder_are_warned_with_valid_advice(
    benchpool: Benchpool,
    repo: Path,
    environ: dict[str, str],
    capfdbinary: pytest.CaptureFixture[bytes],
    name: str,
    where: str,
) -> None:
    environ["VIRTUAL_ENV"] = sys.prefix  # its Python has a kernel
    output = _run(capfdbinary, environ, repo / "notebooks", "submit", name)
    lines = [line for line in output.splitlines() if "is not sent with" in line]
    assert [line.split(" is above")[0] for line in lines] == [
        f"{where}, line 2: `helper_fn` in `../common`",
        f"{where}, line 4: `../data/x.csv`",
    ]
    command = f"benchpool submit notebooks/{name}"
    assert all(f"run `{command}` in {repo}" in line for line in lines)
    assert "install" not in output

    file = repo / "notebooks" / name
    changed = file.read_text().replace("../common", "common").replace("../data", "data")
    file.write_text(changed)
    done = benchpool("submit", "--wait", *command.split()[2:])
    assert (done.status, "got 8" in done.out) == (0, True)
    assert "is not sent with" not in done.err


def test_shell_command_in_cell_is_warned_with_valid_advice(
    benchpool: Benchpool,
    repo: Path,
    environ: dict[str, str],
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    environ["VIRTUAL_ENV"] = sys.prefix  # its Python has a kernel
    file = repo / "notebooks" / "use.ipynb"
    skipped = v4.new_code_cell("!cat ../data/y", metadata={"tags": ["skip-execution"]})
    cells = [skipped, v4.new_code_cell("x = 1\nlines = !cat ../data/x.csv\nprint('got', lines)")]
    file.write_text(writes(v4.new_notebook(cells=cells)))
    output = _run(capfdbinary, environ, repo / "notebooks", "submit", "use.ipynb")
    (line,) = [line for line in output.splitlines() if "is not sent with" in line]
    command = "benchpool submit notebooks/use.ipynb"
    assert line == (
        "cell 2, line 2: `../data/x.csv` is above the folder notebooks and is not sent with "
        f"the job: run `{command}` in {repo}, with `data/x.csv` instead of `../data/x.csv` in the "
        "code."
    )
    file.write_text(file.read_text().replace("../data", "data"))
    done = benchpool("submit", "--wait", *command.split()[2:])
    assert (done.status, "got ['1']" in done.out) == (0, True)
    assert "is not sent with" not in done.err


def test_gpu_selection_in_code_is_warned_with_line_number(
    benchpool: Benchpool, folder: Path
) -> None:
    (folder / "fixed.py").write_text("import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'\n")
    result = benchpool("submit", "fixed.py")
    assert result.status == 0
    assert "fixed.py, line 2: sets CUDA_VISIBLE_DEVICES to `0`, which overrides" in result.err


def _run(
    capfdbinary: pytest.CaptureFixture[bytes], environ: Mapping[str, str], here: Path, *words: str
) -> str:
    capfdbinary.readouterr()
    assert cli.run(words, environ, here) == 0
    return capfdbinary.readouterr().err.decode()
