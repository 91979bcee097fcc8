"""File that kernels import: its modules, and the environment of the server that offers it."""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from benchpool.foreign import link
from benchpool.server import kernel_package
from benchpool_scheduler.worker import job_package

CONTENT = {"jobs": job_package.content, "kernels": job_package.kernel_content}


@pytest.mark.parametrize("whose", CONTENT)
def test_package_parses_as_python_3_9(whose: str) -> None:
    with zipfile.ZipFile(io.BytesIO(CONTENT[whose]())) as archive:
        for name in archive.namelist():
            ast.parse(archive.read(name), name, feature_version=(3, 9))


@pytest.mark.parametrize("whose", CONTENT)
def test_package_imports_standard_library_only(whose: str, tmp_path: Path) -> None:
    (tmp_path / "benchpool.zip").write_bytes(CONTENT[whose]())
    with zipfile.ZipFile(tmp_path / "benchpool.zip") as archive:
        modules = [
            name[: -len(".py")].replace("/", ".").removesuffix(".__init__")
            for name in archive.namelist()
            if name.startswith("benchpool/") and not name.endswith(FRAMEWORKS)
        ]
    code = (
        "import sys; from importlib import import_module\n"
        f"for each in {modules!r}: import_module(each)\n"
        "print(sorted({it.partition('.')[0] for it in sys.modules} - sys.stdlib_module_names))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(tmp_path / "benchpool.zip")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "['__main__', 'benchpool']\n"


FRAMEWORKS = ("checkpoint/huggingface.py", "checkpoint/keras.py", "checkpoint/lightning.py")
"""Callbacks that are imported beside their framework."""


def test_server_offers_package_last_in_python_path(tmp_path: Path) -> None:
    environ = {"PYTHONPATH": "/site"}
    kernel_package.offer(environ, tmp_path)
    (file,) = tmp_path.glob("python/*/benchpool.zip")
    assert environ["PYTHONPATH"] == f"/site:{file}"
    assert environ[link.PYTHON] == sys.executable
    assert link.environment(environ)["PYTHONPATH"] == "/site"


def test_server_starts_when_package_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    environ: dict[str, str] = {}
    kernel_package.offer(environ, tmp_path / "file")
    assert environ == {}


def test_request_outside_kernel_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(link.PYTHON, raising=False)
    with pytest.raises(RuntimeError, match="jobs send no jobs"):
        link.call({"do": "options"})


def test_process_that_ends_early_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    monkeypatch.setenv(link.PYTHON, str(python))
    with pytest.raises(RuntimeError, match="ended without an answer"):
        link.call({"do": "options"})
