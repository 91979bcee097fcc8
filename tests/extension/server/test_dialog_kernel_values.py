"""The dialog offers values of the notebook's kernel, and the job receives them."""

from __future__ import annotations

from typing import Any

import pytest

from benchpool_scheduler.contract import State
from benchpool_scheduler.worker.records import VALUES
from benchpool_support import live_kernels
from benchpool_support.dialog import body, made, new_key, prepared
from benchpool_support.notebook_server import NotebookServer
from benchpool_support.serving import Served

pytestmark = pytest.mark.slow

CELLS = ("open('ran', 'w')\nx = [20]", "print('got', x)")


def asked(kernel: str, **more: Any) -> dict[str, Any]:
    """Return the request of the dialog for two cells, the first of which was slow."""
    run = {"number": 1, "seconds": 840.0, "failed": False}
    cells = [
        {
            "id": f"cell-{at}", "cell_type": "code", "source": text, "selected": at == 1,
            "runs": [run] if at == 0 else [],
        }
        for at, text in enumerate(CELLS)
    ]  # fmt: skip
    return body(cells=cells, kernel_id=kernel, **more)


async def test_value_of_slow_cell_is_chosen_and_sent(server: NotebookServer, pool: Served) -> None:
    kernel = live_kernels.start(server.page)
    await live_kernels.run(server.page, kernel, "x = [20]")
    await live_kernels.run(server.page, kernel, "x.append('live')")
    answer = prepared(server.page, asked(kernel))
    (offer,) = answer["offers"]
    assert (offer["names"], offer["chosen"]) == (["x"], True)
    assert offer["text"].startswith("recompute 14 min / send ")
    assert [each["included"] for each in answer["cells"]] == [False, True]
    assert answer["command"] == "%%train --gpus 1 --send x"
    unticked = prepared(server.page, asked(kernel, send=[]))
    assert [each["included"] for each in unticked["cells"]] == [True, True]
    job = made(server.page.post("benchpool/send", json=asked(kernel, send=["x"], key=new_key())))
    with pool.client("susan") as client:
        assert client.wait(job["id"]).state is State.SUCCEEDED
        assert "got [20, 'live']" in client.log(job["id"]).data.decode()
        files = client.submission(job["id"]).files
    assert all(file.path.startswith(f"{VALUES}/") for file in files)
    assert not (server.root / "ran").exists()
    counted = await live_kernels.run(server.page, kernel, "print(len(In))")
    assert counted == "4\n", "nothing ran for it"


async def test_sent_value_is_priced_without_upload_until_replaced(
    server: NotebookServer,
) -> None:
    kernel = live_kernels.start(server.page)

    def offered() -> str:
        (offer,) = prepared(server.page, asked(kernel))["offers"]
        return str(offer["text"])

    await live_kernels.run(server.page, kernel, "x = [20]")
    assert "unchanged" not in offered()
    made(server.page.post("benchpool/send", json=asked(kernel, send=["x"], key=new_key())))
    assert offered().endswith("if unchanged since it was sent")
    await live_kernels.run(server.page, kernel, "y = x; x = [20, 30]")
    assert "unchanged" not in offered()


async def test_unsendable_value_is_refused_by_name(server: NotebookServer) -> None:
    kernel = live_kernels.start(server.page)
    await live_kernels.run(server.page, kernel, "import threading; x = [threading.Lock()]")
    dialog = prepared(
        server.page, asked(kernel), lambda it: any(each["obstacle"] for each in it["offers"])
    )
    (offer,) = dialog["offers"]
    assert (offer["chosen"], offer["obstacle"]) == (False, "x[0] is a lock")
    assert [each["included"] for each in dialog["cells"]] == [True, True]
    answer = server.page.post("benchpool/send", json=asked(kernel, send=["x"], key=new_key()))
    assert "x[0] is a lock" in answer.json()["error"]["message"]
    gone = server.page.post("benchpool/send", json=asked("gone", send=["x"], key=new_key()))
    assert "No kernel runs for this notebook" in gone.json()["error"]["message"]
