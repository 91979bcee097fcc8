"""Warnings of the dialog about code that is likely to fail in a job."""

from __future__ import annotations

import pytest

from benchpool_support.dialog import body, new_key, prepared, write_notebook
from benchpool_support.notebook_server import NotebookServer

pytestmark = pytest.mark.slow

SETS = "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '1'"


def test_gpu_chosen_by_cell_is_warned_with_code_position(server: NotebookServer) -> None:
    write_notebook(server.root / "fixed.ipynb", SETS, "device = 'cuda:1'")
    asked = body("notebook", "fixed.ipynb", cells=None)
    answer = prepared(server.page, asked, lambda it: it["preview"])
    first, second = (cell["id"] for cell in answer["cells"])
    problems = answer["problems"]
    assert [(each["level"], each["cell"], each["line"]) for each in problems] == [
        ("warning", first, 2),
        ("warning", second, 1),
    ]
    assert problems[0]["text"].startswith("sets CUDA_VISIBLE_DEVICES to `1`, which overrides")
    assert problems[1]["text"].startswith("uses GPU 1, and the job is sent with 1 GPU:")
    asked = body("notebook", "fixed.ipynb", cells=None, gpus=2)
    problems = prepared(server.page, asked, lambda it: it["preview"])["problems"]
    assert [each["cell"] for each in problems] == [first]
    assert server.page.post("benchpool/send", json={**asked, "key": new_key()}).status_code == 201


def test_files_above_script_folder_are_warned(
    server: NotebookServer,
) -> None:
    (server.root / "data").mkdir()
    (server.root / "data" / "x.csv").write_text("1")
    source = "print(open('../data/x.csv').read())"
    write_notebook(server.root / "repo" / "use.ipynb", source)
    (server.root / "repo" / "use.py").write_text(source)
    asked = body("script", "repo/use.py", kernel_name=None)
    (problem,) = prepared(server.page, asked, lambda it: it["preview"])["problems"]
    assert problem["text"].startswith("use.py, line 1: `../data/x.csv` is above the folder repo")
    asked = body("notebook", "repo/use.ipynb", cells=None)
    assert prepared(server.page, asked, lambda it: it["preview"])["problems"] == []
