"""Requests of the page to its notebook server, with a real pool."""

from __future__ import annotations

import json
import shlex
import sys
from typing import Any

import nbformat
import pytest

from benchpool.runner.heading import CELL
from benchpool_scheduler.contract import State
from benchpool_support.dialog import CELLS, body, made, new_key, prepared, write_notebook
from benchpool_support.notebook_server import NotebookServer
from benchpool_support.serving import Served

pytestmark = pytest.mark.slow

# ------------------------------------------------------------------ prepare


def test_dialog_shows_selection_and_expected_start(
    server: NotebookServer,
) -> None:
    write_notebook(server.root / "book.ipynb", *CELLS)
    answer = prepared(server.page, body(gpus=4), lambda it: it["preview"] and it["quota"])
    assert [each["included"] for each in answer["cells"]] == [True, True, False, True, False]
    assert answer["cells"][1]["why"] == "defines `x`"
    assert answer["problems"] == []
    assert answer["name"] == "book"
    assert answer["interpreter"] == sys.executable
    assert answer["working_dir"] == "."
    assert answer["output_dir"] == "benchpool-results/book-…"
    assert answer["command"] == "%%train --gpus 4"
    assert answer["preview"]["starts"] == "now"
    assert (answer["preview"]["within_quota"], answer["preview"]["over_quota"]) == (2, 2)
    assert answer["refusal"] is None
    assert answer["quota"]["user"] == "susan"
    assert answer["checkpoint"] == {
        "found": False,
        "text": "no checkpoint found: starts from the beginning after a pause. A loop of this "
        "form, with all names that it changes, resumes where it stopped:",
        "lines": "from benchpool import checkpoint\n\n"
        "for step in checkpoint.loop(range(N), model=model, optimizer=optimizer):",
    }


def test_model_spread_and_tags_reach_job_and_command(
    server: NotebookServer,
) -> None:
    (server.root / "train.py").write_text("print(1)\n")
    (model,) = {gpu["model"] for gpu in made(server.page.get("benchpool/api/v1/status"))["gpus"]}
    options = {"workers": 2, "gpu_models": [model], "spread": True, "tags": ["a"]}
    answer = made(server.page.post("benchpool/prepare", json=body("script", "train.py", **options)))
    assert answer["command"] == (
        f"benchpool submit --gpus 1 --workers 2 --gpu-model {shlex.quote(model)} --spread "
        "--tag a train.py"
    )
    assert answer["refusal"] is None
    other = {"gpu_models": ["no such model"]}
    answer = made(server.page.post("benchpool/prepare", json=body("script", "train.py", **other)))
    assert "no such model" in str(answer["refusal"] or answer["preview"])


def test_cell_problem_is_reported_before_sending(server: NotebookServer) -> None:
    cells = body()["cells"]
    cells[3]["source"] = "print(1)\nprint(xx)"
    answer = made(server.page.post("benchpool/prepare", json=body(cells=cells)))
    assert answer["problems"] == [
        {
            "level": "error",
            "text": "`xx` is defined in no cell of this notebook.",
            "cell": "cell-3",
            "line": 2,
        }
    ]
    refused = server.page.post("benchpool/send", json=body(cells=cells, key=new_key()))
    assert refused.status_code == 422
    assert refused.json()["error"]["message"] == (
        "Cell 4, line 2: `xx` is defined in no cell of this notebook."
    )


def prepare_until_problem(server: NotebookServer, request: dict[str, Any]) -> dict[str, Any]:
    """Prepare until a problem is reported; each request waits at most 1.5 s for the imports."""
    for _ in range(40):
        answer = made(server.page.post("benchpool/prepare", json=request))
        if answer["problems"]:
            break
    return answer


def test_import_missing_in_kernel_is_reported_before_sending(
    server: NotebookServer,
) -> None:
    cells = body()["cells"]
    cells[3]["source"] = "x = 1\nimport msgspecc"
    wanted = f"there is no module `msgspecc` in {sys.executable}, the Python of this job; did you "
    answer = prepare_until_problem(server, body(cells=cells))
    assert answer["problems"] == [
        {"level": "error", "text": f"{wanted}mean `msgspec`?", "cell": "cell-3", "line": 2}
    ]
    refused = server.page.post("benchpool/send", json=body(cells=cells, key=new_key()))
    assert refused.status_code == 422
    assert refused.json()["error"]["message"] == f"Cell 4, line 2: {wanted}mean `msgspec`?"
    (server.root / "lacks.py").write_text("import msgspecc\n")
    answer = prepare_until_problem(server, body("script", "lacks.py"))
    assert [each["text"] for each in answer["problems"]] == [
        f"lacks.py, line 1: {wanted}mean `msgspec`?"
    ]
    cells[2]["source"] = "%%writefile msgspecc.py\nx = 1"
    cells[2]["selected"] = True
    answer = prepare_until_problem(server, body(cells=cells))
    assert [each["level"] for each in answer["problems"]] == ["warning"]


def test_impossible_request_is_refused_with_numbers(server: NotebookServer) -> None:
    answer = made(server.page.post("benchpool/prepare", json=body(gpus=64)))
    refusal = answer["refusal"] or answer["preview"]
    assert "64" in json.dumps(refusal)
    assert answer["preview"] is None or answer["preview"]["starts"] == "never"


def test_script_is_prepared_with_its_files(server: NotebookServer) -> None:
    folder = server.root / "exp"
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text("import torch\ntorch.save(1, 'x')")
    (folder / "lib.py").write_text("")
    (folder / ".env").write_text("PASSWORD=1")
    asked = body("script", "exp/train.py", args=["--lr", "1 2"], name="mine")
    answer = prepared(server.page, asked, lambda it: it["preview"] and it["files"])
    assert answer["files"]["count"] == 2
    assert [each["path"] for each in answer["files"]["left_out"]] == [".env"]
    assert answer["command"] == "benchpool submit --gpus 1 --name mine train.py --lr '1 2'"
    assert answer["refusal"] is None
    assert answer["preview"]["starts"] == "now"
    assert answer["checkpoint"]["text"].startswith("found: torch.save →")


def test_dialog_works_without_pool(lonely: NotebookServer) -> None:
    dialog = made(lonely.page.post("benchpool/prepare", json=body()))
    assert dialog["cells"][1]["included"]
    assert dialog["refusal"]["code"] == "not-reachable"
    assert dialog["preview"] is None
    answer = lonely.page.get("benchpool/api/v1/jobs")
    assert answer.status_code == 503
    assert "is not reachable" in answer.json()["error"]["message"]


# ------------------------------------------------------------------ send, result


def test_cells_are_sent_run_and_results_return(server: NotebookServer, pool: Served) -> None:
    write_notebook(server.root / "deep" / "book.ipynb", *CELLS)
    key = new_key()
    asked = body(path="deep/book.ipynb", key=key, name="my run")
    answer = server.page.post("benchpool/send", json=asked)
    assert answer.status_code == 201
    job = made(answer)
    assert made(server.page.post("benchpool/send", json=asked))["id"] == job["id"]
    with pool.client("susan") as client:
        assert client.wait(job["id"]).state is State.SUCCEEDED
        submission = client.submission(job["id"])
    assert submission.source is not None
    assert submission.source.cells == ["cell-3"]
    assert submission.working_dir == str(server.root / "deep")
    result = made(server.page.get("benchpool/result", params={"job": job["id"]}))
    assert result["output_dir"].startswith("deep/benchpool-results/my-run-")
    assert result["notebook"].startswith(f"{result['output_dir']}/book-")
    book = nbformat.read(server.root / result["notebook"], as_version=4)
    assert [cell.id for cell in book.cells] == [CELL, "cell-0", "cell-1", "cell-3"]
    assert book.cells[3].outputs[0].text == f"21 {server.root / 'deep'}\n"
    assert (server.root / "deep" / "made").exists()


def test_kept_values_are_offered_and_listed_with_reading_code(
    server: NotebookServer, pool: Served
) -> None:
    write_notebook(server.root / "left.ipynb", "net = {'w': 1}\nother = print")
    asked = body("notebook", "left.ipynb", cells=None)
    answer = made(server.page.post("benchpool/prepare", json=asked))
    assert answer["left"] == ["net", "other"]
    named = {**asked, "key": new_key(), "keep": ["net", "gone"]}
    job = made(server.page.post("benchpool/send", json=named))
    with pool.client("susan") as client:
        assert client.wait(job["id"]).state is State.SUCCEEDED
    result = made(server.page.get("benchpool/result", params={"job": job["id"]}))
    line = f'net = benchpool.job("{job["id"]}")["net"]'
    assert result["values"] == [{"name": "net", "text": "dict", "line": line}]
    assert result["left_out"] == ["gone is not defined at the end of the run"]
    assert not [each for each in result["files"] if "benchpool-values" in each]
    refused = server.page.post("benchpool/send", json={**named, "keep": ["a.b"]})
    assert "'a.b' is not a valid name" in refused.json()["error"]["message"]


def test_closed_notebook_is_read_from_file(server: NotebookServer, pool: Served) -> None:
    write_notebook(server.root / "closed.ipynb", "a = 1", "print('sum', a + 1)")
    asked = body("notebook", "closed.ipynb", cells=None, key=new_key())
    job = made(server.page.post("benchpool/send", json=asked))
    with pool.client("susan") as client:
        assert client.wait(job["id"]).state is State.SUCCEEDED
        assert b"sum 2\n" in client.log(job["id"]).data


def test_script_runs_in_copy_and_results_return(server: NotebookServer, pool: Served) -> None:
    folder = server.root / "scripts"
    folder.mkdir()
    (folder / "go.py").write_text(
        "import os, sys, lib\nopen('new', 'w').write(sys.argv[1])\nprint(os.getcwd())"
    )
    (folder / "lib.py").write_text("")
    more = {"args": ["an argument"], "key": new_key(), "kernel_name": None}
    asked = body("script", "scripts/go.py", **more)
    job = made(server.page.post("benchpool/send", json=asked))
    with pool.client("susan") as client:
        assert client.wait(job["id"]).state is State.SUCCEEDED
        assert str(folder).encode() not in client.log(job["id"]).data
    result = made(server.page.get("benchpool/result", params={"job": job["id"]}))
    (new,) = [each for each in result["files"] if each.endswith("/new")]
    assert (server.root / new).read_text() == "an argument"
    assert not (folder / "new").exists()


def test_results_of_other_users_are_not_found(server: NotebookServer, pool: Served) -> None:
    answer = server.page.get("benchpool/result", params={"job": "a" * 26})
    assert answer.status_code == 404
    assert server.page.get("benchpool/result", params={"job": "../x"}).status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        *("../secret.py", "/etc/passwd", "a/../../x.py", "a\\b.py", "", "x\0.py"),
        *("a" * 300, "RTC:../secret.py", "RTC:/../secret.py", "\ud7ff/" * 500),
    ],
)
def test_path_outside_server_folder_is_rejected(server: NotebookServer, path: str) -> None:
    secret = server.root.parent / "secret.py"
    secret.write_text("print('secret')")
    for route in ("prepare", "send"):
        asked = {**body("script", path), "key": new_key()}
        answer = server.page.post(f"benchpool/{route}", json=asked)
        assert answer.status_code in (404, 422)
        assert "error" in answer.json()


@pytest.mark.parametrize(
    "change",
    [{"gpus": 0}, {"gpus": 1.5}, {"gpus": True}, {"unknown": 1}, {"kind": "shell"}, {"cells": [1]}],
)
def test_undeclared_body_is_rejected(server: NotebookServer, change: dict[str, Any]) -> None:
    answer = server.page.post("benchpool/prepare", json=body(**change))
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "invalid-input"


def test_missing_kernel_is_named(server: NotebookServer) -> None:
    answer = made(server.page.post("benchpool/prepare", json=body(kernel_name="ir")))
    assert answer["interpreter"] is None
    assert answer["problems"][0]["text"] == (
        "This server has no kernel ir. Choose a Python kernel for the notebook."
    )


def test_damaged_notebook_is_named(server: NotebookServer) -> None:
    folder = server.root / "odd"
    folder.mkdir(exist_ok=True)
    (folder / "book.ipynb").write_text(json.dumps({"cells": [{"cell_type": "code"}]}))
    asked = body("notebook", "odd/book.ipynb", cells=None)
    answer = server.page.post("benchpool/prepare", json=asked)
    assert answer.status_code == 422
    assert answer.json()["error"]["message"].startswith("book.ipynb cannot be read as a notebook")
