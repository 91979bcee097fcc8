"""``benchpool submit`` runs a notebook with the Python of its kernel, and reports that Python."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from nbformat import v4, writes

from benchpool_scheduler.cli.interpreters import python_for
from benchpool_scheduler.client.notebooks.kernels import python_of
from benchpool_scheduler.contract import ScriptEntry

Benchpool = Callable[..., Any]

LAUNCHES = ["-m", "ipykernel_launcher", "-f", "{connection_file}"]
HERE = os.path.dirname(sys.executable)


def install(data: Path, name: str, python: str, **more: object) -> None:
    """Install a kernel spec as ``ipykernel install --name`` does."""
    folder = data / "kernels" / name
    folder.mkdir(parents=True)
    spec = {"argv": [python, *LAUNCHES], "display_name": name, "language": "python", **more}
    (folder / "kernel.json").write_text(json.dumps(spec))


def a_python(folder: Path, name: str = "python") -> str:
    """Return the path of a Python with another name than that of the terminal."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).symlink_to(sys.executable)
    return str(folder / name)


@pytest.fixture
def book(folder: Path) -> Path:
    kernel = {"name": "torch-env", "display_name": "Torch", "language": "python"}
    cell = v4.new_code_cell("import sys\nprint('by', sys.executable)", metadata={"mine": 1})
    notebook = v4.new_notebook(cells=[cell], metadata={"kernelspec": kernel, "title": "Diffusion"})
    (folder / "book.ipynb").write_text(writes(notebook))
    return folder / "book.ipynb"


@pytest.mark.slow
def test_notebook_runs_with_kernel_python_and_keeps_metadata(
    benchpool: Benchpool, book: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    environ["JUPYTER_PATH"] = str(tmp_path / "jupyter")
    environ["VIRTUAL_ENV"] = sys.prefix
    # A separate program: a link elsewhere would be a Python without our packages.
    torch = tmp_path / "torch-python"
    torch.write_text(f'#!/bin/sh\nTORCH=yes exec {shlex.quote(sys.executable)} "$@"\n')
    torch.chmod(0o755)
    cell = v4.new_code_cell("import os\nprint('torch', os.environ.get('TORCH'))")
    notebook = json.loads(book.read_text())
    notebook["cells"][0]["source"] = cell.source
    book.write_text(json.dumps(notebook))
    install(tmp_path / "jupyter", "torch-env", str(torch))
    done = benchpool("submit", "--wait", "book.ipynb")
    assert done.status == 0, done.err
    assert f"book.ipynb runs with {torch}, the Python of its kernel torch-env.\n" in done.err
    assert "torch yes" in done.out
    (copy,) = (book.parent / "benchpool-results").glob("*/book*.ipynb")
    executed = json.loads(copy.read_text())
    assert executed["metadata"]["kernelspec"] == notebook["metadata"]["kernelspec"]
    assert executed["metadata"]["title"] == "Diffusion"
    assert executed["cells"][1]["metadata"]["mine"] == 1

    done = benchpool("submit", "--wait", "--python", sys.executable, "book.ipynb")
    assert f"book.ipynb runs with {sys.executable}, from --python.\n" in done.err
    assert (done.status, "torch None" in done.out) == (0, True), done.err


@pytest.mark.slow
def test_missing_kernel_is_reported_and_terminal_python_used(
    benchpool: Benchpool, book: Path, environ: dict[str, str]
) -> None:
    environ["VIRTUAL_ENV"] = sys.prefix
    python = os.path.join(sys.prefix, "bin", "python")
    done = benchpool("submit", "--wait", "book.ipynb")
    assert (done.status, f"by {python}" in done.out) == (0, True), done.err
    assert (
        f"book.ipynb has the kernel torch-env, not found here: it runs with {python}, the "
        "Python of this terminal.\n"
    ) in done.err


@pytest.mark.slow
def test_python_option_is_rejected_where_unusable(benchpool: Benchpool, folder: Path) -> None:
    (folder / "a.py").write_text("import sys\nprint('by', sys.executable)")
    result = benchpool("submit", "--python", "gone/python", "a.py")
    assert result.err.startswith("benchpool: There is no program gone/python. Give --python")
    result = benchpool("submit", "--python", "python3", "--", "make")
    assert "Name the Python of a command in the command: `-- python3 ...`." in result.err
    name = Path(sys.executable).name
    done = benchpool("submit", "--wait", "--python", name, "a.py")
    assert (done.status, f"by {sys.executable}" in done.out) == (0, True), done.err


@pytest.mark.parametrize("place", ["JUPYTER_PATH", "JUPYTER_DATA_DIR", "XDG_DATA_HOME", "HOME"])
def test_kernels_are_found_in_jupyter_folders(place: str, tmp_path: Path) -> None:
    below = {"XDG_DATA_HOME": "jupyter", "HOME": ".local/share/jupyter"}
    if sys.platform == "darwin":
        below["HOME"] = "Library/Jupyter"
        if place == "XDG_DATA_HOME":
            pytest.skip("of other systems")
    python = a_python(tmp_path / "env" / "bin")
    install(tmp_path / "data" / below.get(place, ""), "Torch-Env", python)
    found = python_of("torch-env", "/usual", {place: str(tmp_path / "data")})
    assert (found.path, found.why) == (
        python,
        f"runs with {python}, the Python of its kernel torch-env",
    )


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_kernel_of_active_environment_uses_its_python(variable: str, tmp_path: Path) -> None:
    python = a_python(tmp_path / "env" / "bin")
    install(tmp_path / "env" / "share" / "jupyter", "mine", "python")
    environ = {variable: str(tmp_path / "env"), "HOME": str(tmp_path / "home")}
    install(tmp_path / "home" / ".local/share/jupyter", "mine", sys.executable)
    assert python_of("mine", "/usual", environ).path == python


@pytest.mark.parametrize("name", [None, "python3", "python"])
def test_generic_kernel_uses_terminal_python(name: str | None, tmp_path: Path) -> None:
    install(tmp_path, "python3", a_python(tmp_path / "env" / "bin"))
    found = python_of(name, "/usual", {"JUPYTER_PATH": str(tmp_path)})
    assert (found.path, found.why) == ("/usual", "runs with /usual, the Python of this terminal")


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"argv": ["/gone/python", *LAUNCHES]}, "no Python (/gone/python)"),
        ({"argv": ["gone-python", *LAUNCHES]}, "no Python (gone-python)"),
        ({"argv": [sys.executable, "-m", "other"]}, "no Python"),
        ({"argv": [sys.executable, *LAUNCHES], "language": "R"}, "no Python"),
        ({"argv": []}, "no Python"),
        ({"argv": [3, *LAUNCHES]}, "no Python"),
        ({"argv": ["/usr/bin/env", "python", *LAUNCHES]}, "no Python"),
        ({"argv": ["conda", "run", "-n", "torch", "python", *LAUNCHES]}, "no Python"),
        ({"argv": [HERE, *LAUNCHES]}, f"no Python ({HERE})"),
    ],
)
def test_kernel_with_missing_python_is_reported(
    spec: Mapping[str, object], text: str, tmp_path: Path
) -> None:
    install(tmp_path, "odd", "", **spec)
    found = python_of("odd", "/usual", {"JUPYTER_PATH": str(tmp_path)})
    assert found.path == "/usual"
    assert found.why == (
        f"has the kernel odd, which names {text} that exists here: it runs with /usual, the Python "
        "of this terminal"
    )


@pytest.mark.parametrize(
    "options", [["-X", "dev"], ["-Xfrozen_modules=off"], ["-I", "-W", "ignore"]]
)
def test_kernel_with_python_options_is_resolved(options: list[str], tmp_path: Path) -> None:
    install(tmp_path, "mine", "", argv=[sys.executable, *options, *LAUNCHES])
    assert python_of("mine", "/usual", {"JUPYTER_PATH": str(tmp_path)}).path == sys.executable


def test_kernel_in_relative_data_folder_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "mine", "python")
    monkeypatch.chdir(tmp_path)
    python = a_python(tmp_path / "bin")
    environ = {"JUPYTER_PATH": ".", "PATH": str(tmp_path / "bin")}
    assert python_of("mine", "/usual", environ).path == python


def test_relative_path_entry_gives_absolute_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = a_python(tmp_path / "bin", "mine")
    monkeypatch.chdir(tmp_path)
    found = python_for(ScriptEntry("a.py"), {"PATH": "bin"}, tmp_path, asked="mine")
    assert found.path == python


@pytest.mark.parametrize("name", ["../kernels/odd", "a b", "", "ödd"])
def test_invalid_kernel_name_is_not_searched(name: str, tmp_path: Path) -> None:
    install(tmp_path, "odd", sys.executable)
    assert python_of(name, "/usual", {"JUPYTER_PATH": str(tmp_path)}).path == "/usual"


@pytest.mark.parametrize("text", ["", "[", "3", '"x"', "[" * 100_000])
def test_unreadable_kernel_spec_is_ignored(text: str, tmp_path: Path) -> None:
    (tmp_path / "kernels" / "odd").mkdir(parents=True)
    (tmp_path / "kernels" / "odd" / "kernel.json").write_text(text)
    found = python_of("odd", "/usual", {"JUPYTER_PATH": str(tmp_path)})
    assert (found.path, "names no Python that exists here" in found.why) == ("/usual", True)
