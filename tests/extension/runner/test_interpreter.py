"""Check of the Python that runs a notebook."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from benchpool.runner.interpreter import CannotStart, probe


def program(folder: Path, lines: str) -> str:
    """Return the path of a shell script, in a folder with a space in its name."""
    path = folder / "my python" / "python"
    path.parent.mkdir()
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)
    return str(path)


def test_failing_interpreter_is_reported_with_its_last_line(tmp_path: Path) -> None:
    python = program(tmp_path, "echo first >&2; echo 'no such library' >&2; exit 127")
    with pytest.raises(CannotStart) as failed:
        probe(python)
    assert str(failed.value) == (
        f"the notebook's Python {python} does not work: no such library. Choose another kernel "
        "and send again."
    )


def test_advised_command_quotes_a_path_with_spaces(tmp_path: Path) -> None:
    python = program(tmp_path, "echo '[[3, 11], false, false]'")
    with pytest.raises(CannotStart) as failed:
        probe(python)
    assert shlex.split(str(failed.value).split("`")[1])[0] == python
