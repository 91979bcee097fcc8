"""Parameters in the dialog: offered, checked and sent, with a real pool."""

from __future__ import annotations

import pytest

from benchpool_scheduler.contract import State
from benchpool_support.dialog import body, made, new_key
from benchpool_support.notebook_server import NotebookServer
from benchpool_support.serving import Served

pytestmark = pytest.mark.slow


def test_parameter_fields_are_offered_checked_and_sent(
    server: NotebookServer, pool: Served
) -> None:
    asked = body()
    asked["cells"][1] |= {"source": "x = 20  # how many", "tags": ["parameters"]}
    asked["cells"][3]["source"] = "y = 1\nprint('sum', x + y)"
    answer = made(server.page.post("benchpool/prepare", json=asked))
    assert answer["parameters"] == [
        {"name": "x", "type": "int", "default": "20", "help": "how many", "cell": "cell-1",
         "tagged": True},
        {"name": "y", "type": "int", "default": "1", "help": "", "cell": "cell-3",
         "tagged": False},
    ]  # fmt: skip
    wrong = {**asked, "parameters": {"x": "many"}}
    answer = made(server.page.post("benchpool/prepare", json=wrong))
    assert answer["refusal"]["field"] == "parameters.x"
    assert len(answer["parameters"]) == 2, "the fields stay"
    refused = server.page.post("benchpool/send", json={**wrong, "key": new_key()})
    assert (refused.status_code, refused.json()["error"]["field"]) == (422, "parameters.x")
    right = {**asked, "parameters": {"x": "30", "y": "2"}}
    assert made(server.page.post("benchpool/prepare", json=right))["command"] == (
        "%%train --gpus 1 --parameter x=30 --parameter y=2"
    )
    job = made(server.page.post("benchpool/send", json={**right, "key": new_key()}))
    assert job["parameters"] == {"x": 30, "y": 2}
    with pool.client("susan") as client:
        assert client.wait(job["id"]).state is State.SUCCEEDED
        assert b"sum 32\n" in client.log(job["id"]).data
