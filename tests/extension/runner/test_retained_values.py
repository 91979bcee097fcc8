"""Values that a job's cells leave are kept at its end, in a real kernel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

from benchpool.keep import Keep
from benchpool.values.keeping import FOLDER
from benchpool.values.reading import StoredValues

pytestmark = pytest.mark.slow


def run(root: Path, *cells: str, keep: dict[str, object], **env: str) -> tuple[int, str]:
    """Run cells as a job; return exit status and log."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
    book.metadata["benchpool"] = {"path": "book.ipynb", "keep": keep}
    nbformat.write(book, root / "object")
    (root / "output").mkdir(exist_ok=True)
    own = {key: value for key, value in os.environ.items() if "BENCHPOOL" not in key}
    places = {"BENCHPOOL_OUTPUT_DIR": str(root / "output")}
    done = subprocess.run(
        [
            *(sys.executable, "-m", "benchpool.runner", "notebook"),
            *("--notebook", str(root / "object"), "--output", str(root / "output")),
        ],
        cwd=root,
        env={**own, **places, **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


def kept(root: Path, **how: Any) -> StoredValues:
    return StoredValues(root / "output" / FOLDER, pickles=False, **how)


def test_defined_names_are_kept_and_reported(tmp_path: Path) -> None:
    keep = Keep().of(("losses", "config", "loader", "math", "unseen"))
    cells = [
        "import math\nlosses = [0.5, 0.25]",
        "config = {'of': losses}",
        "loader = iter(losses)",
    ]
    status, log = run(tmp_path, *cells, keep=keep)
    assert status == 0
    assert log.splitlines()[-2:] == [
        "benchpool: kept config (dict), losses (list)",
        "benchpool: not kept: loader is an object of the type list_iterator, which has no safe "
        "format; allow pickles to send it",
    ]
    values = kept(tmp_path)
    assert values["config"]["of"] is values["losses"]
    assert values["losses"] == [0.5, 0.25]


def test_call_result_is_kept_as_result(tmp_path: Path) -> None:
    keep = Keep(returns=True).of(())
    run(tmp_path, "def train(lr):\n    return {'lr': lr}", "train(0.1)", keep=keep)
    values = kept(tmp_path)
    assert (values.returns, values["_"]) == (True, {"lr": 0.1})
    _, log = run(tmp_path, "5", "x = 1", keep=keep)
    assert dict(kept(tmp_path)) == {}, "the last cell has no value, an earlier one's is not its own"
    assert "kept" not in log


def test_values_before_failed_cell_are_kept(tmp_path: Path) -> None:
    keep = Keep(names=("model", "late")).of(())
    status, log = run(tmp_path, "model = [1]", "1 / 0", "late = 2", keep=keep)
    assert status == 1
    assert "benchpool: kept model (list)" in log
    assert "benchpool: not kept: late is not defined at the end of the run" in log
    assert kept(tmp_path)["model"] == [1]


def test_later_attempt_replaces_kept_values(tmp_path: Path) -> None:
    keep = Keep().of(("x",))
    run(tmp_path, "x = 1", keep=keep)
    run(tmp_path, "x = (2,)", keep=keep)
    assert kept(tmp_path)["x"] == (2,)
    left = {path.name for path in (tmp_path / "output").iterdir()}
    assert left == {FOLDER, "object", "environment.json"}


def test_only_first_gang_worker_keeps_values(tmp_path: Path) -> None:
    status, log = run(tmp_path, "x = 1", keep=Keep().of(("x",)), NODE_RANK="1")
    assert (status, "kept" in log) == (0, False)
    assert not (tmp_path / "output" / FOLDER).exists()


def test_dead_kernel_ends_keeping_without_wait(tmp_path: Path) -> None:
    dies = "import os\nclass Dies(dict):\n  pass\nx = [1]\n"
    hook = "from benchpool.values import keeping\nkeeping.write = lambda *a: os._exit(9)"
    status, log = run(tmp_path, dies + hook, keep=Keep().of(("x",)))
    assert status == 0
    assert log.endswith("benchpool: the kernel ended while values were saved\n")


@pytest.mark.parametrize("keep", [{"names": "x"}, {"names": ["__import__('os')"]}, [], None])
def test_malformed_keep_metadata_keeps_nothing(tmp_path: Path, keep: Any) -> None:
    status, log = run(tmp_path, "x = 1", keep=json.loads(json.dumps(keep)))
    assert (status, "kept" in log) == (0, False)
