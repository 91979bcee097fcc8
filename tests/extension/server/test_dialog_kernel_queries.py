"""The dialog queries the notebook's kernel briefly, unless the kernel is busy."""

from __future__ import annotations

import asyncio
import json

import pytest

from benchpool_scheduler.contract import State
from benchpool_support import live_kernels
from benchpool_support.dialog import body, made, new_key, prepared
from benchpool_support.notebook_server import NotebookServer
from benchpool_support.serving import Served
from benchpool_support.waiting import until

pytestmark = pytest.mark.slow


async def test_dialog_reads_kernel_names_without_running_cells(
    server: NotebookServer,
) -> None:
    kernel = live_kernels.start(server.page)
    await live_kernels.run(server.page, kernel, "x = [20]; other = x; import os")
    answer = prepared(server.page, body(kernel_id=kernel))["kernel"]
    assert (answer["asked"], answer["text"]) == (True, "")
    assert answer["names"].keys() == {"os", "x"}  # the names in the cells
    assert (answer["names"]["x"]["type"], answer["names"]["x"]["length"]) == ("builtins.list", 1)
    counted = await live_kernels.run(server.page, kernel, "print(len(In), repr(_))")
    assert counted == "3 ''\n"


def state_of(server: NotebookServer, kernel: str) -> str:
    return str(made(server.page.get(f"api/kernels/{kernel}"))["execution_state"])


async def test_busy_kernel_is_not_queried(server: NotebookServer) -> None:
    kernel = live_kernels.start(server.page)
    await live_kernels.run(server.page, kernel, "import time; time.sleep(600)", until="busy")
    until(lambda: state_of(server, kernel) == "busy", "Jupyter knows that it is busy")
    answer = made(server.page.post("benchpool/prepare", json=body(kernel_id=kernel)))["kernel"]
    text = (
        "The kernel is busy and was not queried: the cells to include were found from the code "
        "alone."
    )
    assert (answer["asked"], answer["text"], answer["names"]) == (False, text, {})
    await asyncio.to_thread(server.page.delete, f"api/kernels/{kernel}")


def test_dialog_reports_missing_kernel(server: NotebookServer) -> None:
    answer = made(server.page.post("benchpool/prepare", json=body(kernel_id="gone")))["kernel"]
    assert answer["text"].startswith("No kernel runs for this notebook:")
    (server.root / "train.py").write_text("print(1)\n")
    script = made(server.page.post("benchpool/prepare", json=body("script", "train.py")))
    assert script["kernel"] is None


async def test_name_from_older_cell_text_is_reported_with_cell(
    server: NotebookServer,
) -> None:
    kernel = live_kernels.start(server.page)
    await live_kernels.run(server.page, kernel, "import os")
    await live_kernels.run(server.page, kernel, "x = 7")
    asked = body(kernel_id=kernel)
    asked["cells"][1]["runs"] = [{"number": 2, "seconds": 0.1, "failed": False}]
    answer = prepared(server.page, asked)
    assert [(each["cell"], each["text"]) for each in answer["problems"]] == [
        (
            "cell-1",
            "`x` here is from an older version of cell 2; the job runs cell 2 in its current "
            "version.",
        )
    ]
    assert answer["cells"][1]["gives"] == [{"name": "x", "to": [4]}]


def test_displayed_ticks_decide_sent_cells(server: NotebookServer, pool: Served) -> None:
    asked = body(key=new_key(), ticked=["cell-0", "cell-1", "cell-2", "cell-3"])
    job = made(server.page.post("benchpool/send", json=asked))
    with pool.client("susan") as client:
        assert client.wait(job["id"]).state is State.SUCCEEDED
    (notebook,) = server.root.glob("benchpool-results/*/*.ipynb")
    sources = [each["source"] for each in json.loads(notebook.read_text())["cells"]]
    assert "unused = 1" in "".join(map("".join, sources))
