"""Sweeps in the dialog: previewed and sent, with a real pool."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchpool_scheduler.contract import State
from benchpool_support.dialog import body, made, new_key, prepared
from benchpool_support.notebook_server import NotebookServer
from benchpool_support.serving import Served

pytestmark = pytest.mark.slow


def test_cells_are_swept_over_parameters(server: NotebookServer, pool: Served) -> None:
    asked = body()
    asked["cells"][1] |= {"source": "x = 20", "tags": ["parameters"]}
    asked["cells"][3]["source"] = "print('x is', x)"
    asked["sweep"] = {"values": {"x": "1, 2, 4"}, "at_once": 3, "trial_hours": 2.0}
    answer = prepared(server.page, asked, lambda it: it["sweep"])
    assert answer["sweep"]["trials"] == 3
    assert [one["x"] for one in answer["sweep"]["first"]] == [1, 2, 4]
    assert answer["command"] == "%%train --gpus 1 --sweep 'x=1, 2, 4' --at-once 3"
    first = made(server.page.post("benchpool/send", json={**asked, "key": new_key()}))
    assert (first["trial"]["trial"], first["parameters"]) == (0, {"x": 1})
    with pool.client("susan") as client:
        sweep = client.sweep(first["trial"]["sweep"])
        jobs = [trial.job or "" for trial in sweep.trials]
        assert [client.wait(job).state for job in jobs] == [State.SUCCEEDED] * 3
        assert [client.log(job).data.splitlines()[-1] for job in jobs] == [
            b"x is 1",
            b"x is 2",
            b"x is 4",
        ]


def test_values_typed_into_parameter_are_swept(server: NotebookServer, pool: Served) -> None:
    asked = body()
    asked["cells"][1] |= {"source": "x = 20\nrate = 0.1\nname = 'a'", "tags": ["parameters"]}
    asked["cells"][3]["source"] = "print('with', x, rate, name)"
    asked["parameters"] = {"x": "x × 2", "rate": "0.1, 0.2", "name": "b, c"}
    asked["sweep"] = {"metric": "loss", "method": "grid", "patience": 3, "good_enough": 0.01}
    answer = prepared(server.page, asked, lambda it: it["sweep"])
    assert answer["sweep"]["trials"] == 4
    assert answer["swept"] == {"x": "2 values: 0, 1", "rate": "2 values: 0.1, 0.2"}
    assert answer["command"] == (
        "%%train --gpus 1 --parameter 'name=b, c' --sweep 'x=× 2' --sweep 'rate=0.1, 0.2'"
        " --method grid --metric loss --patience 3 --good-enough 0.01"
    )
    first = made(server.page.post("benchpool/send", json={**asked, "key": new_key()}))
    assert first["parameters"] == {"x": 0, "rate": 0.1, "name": "b, c"}
    with pool.client("susan") as client:
        plan = client.sweep(first["trial"]["sweep"]).plan
        assert (plan.patience, plan.good_enough, plan.metric) == (3, 0.01, "loss")
        assert client.wait(first["id"]).state is State.SUCCEEDED
        assert client.log(first["id"]).data.splitlines()[-1] == b"with 0 0.1 b, c"


def test_constant_is_swept_like_tagged_parameter(server: NotebookServer) -> None:
    asked = body()
    asked["parameters"] = {"x": "1, 2, 4"}
    answer = prepared(server.page, asked, lambda it: it["sweep"])
    assert (answer["sweep"]["trials"], answer["swept"]) == (3, {"x": "3 values: 1, 2, 4"})
    assert [one["tagged"] for one in answer["parameters"] if one["name"] == "x"] == [False]


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        ("1.5", "parameters.x", "must be a whole number (its default is 20), not 1.5."),
        ("1, 1.5", "sweep.x", "must be a whole number (its default is 20), not 1.5."),
        ("log:1", "parameters.x", "'log:1' is not a range for 'x'."),
        ("4 … 1 log", "parameters.x", "The first must be smaller."),
    ],
)
def test_invalid_text_of_parameter_is_refused_with_field(
    server: NotebookServer, text: str, field: str, words: str
) -> None:
    asked = body()
    asked["parameters"] = {"x": text}
    answer = made(server.page.post("benchpool/prepare", json=asked))
    assert (answer["refusal"]["field"], answer["sweep"]) == (field, None)
    assert words in answer["refusal"]["message"]


def test_name_with_values_twice_is_refused(server: NotebookServer) -> None:
    asked = body(parameters={"x": "1, 2"}, sweep={"values": {"x": "3, 4"}})
    answer = made(server.page.post("benchpool/prepare", json=asked))
    assert answer["refusal"]["field"] == "sweep.x"
    assert "in its own field and below Many values" in answer["refusal"]["message"]


def test_sweep_limits_without_values_send_one_job(server: NotebookServer) -> None:
    asked = body(sweep={"metric": "loss", "trials": 3})
    answer = made(server.page.post("benchpool/prepare", json=asked))
    assert (answer["refusal"], answer["sweep"]) == (None, None)
    assert answer["command"] == "%%train --gpus 1"
    sent = made(server.page.post("benchpool/send", json={**asked, "key": new_key()}))
    assert sent["trial"] is None


def test_cells_are_sent_as_array(server: NotebookServer, pool: Served) -> None:
    asked = body()
    asked["cells"][1]["source"] = 'import os; x = int(os.environ["BENCHPOOL_ARRAY_TASK_ID"])'
    asked["cells"][3]["source"] = "print('task', x)"
    asked["sweep"] = {"array": "3,5%1", "trial_hours": 1.0}
    answer = prepared(server.page, asked, lambda it: it["sweep"])
    assert answer["sweep"]["text"] == "2 tasks, about 2.00 GPU-hours; 2 h if 1 runs at a time."
    assert answer["command"] == "%%train --gpus 1 --array 3,5%1"
    first = made(server.page.post("benchpool/send", json={**asked, "key": new_key()}))
    assert (first["trial"]["trial"], first["trial"]["array"]) == (0, True)
    with pool.client("susan") as client:
        assert client.wait(first["id"]).state is State.SUCCEEDED
        assert client.log(first["id"]).data.splitlines()[-1] == b"task 3"


def test_repeated_key_returns_same_sweep(server: NotebookServer, pool: Served) -> None:
    asked = body()
    asked["cells"][1] |= {"source": "x = 20", "tags": ["parameters"]}
    asked["cells"][3]["source"] = "print(x)"
    asked |= {"sweep": {"values": {"x": "1, 2"}, "at_once": 2}, "key": new_key()}
    first, again = (made(server.page.post("benchpool/send", json=asked)) for _ in range(2))
    assert first["trial"] == again["trial"]
    with pool.client("susan") as client:
        assert [one.name for one in client.sweeps() if one.plan.max_concurrent == 2] == ["book"]


@pytest.mark.parametrize(
    ("sweep", "field", "words"),
    [
        ({"values": {"rate": "1, 2"}}, "sweep.rate", "has no parameter 'rate'"),
        ({"values": {"x": "log:1"}}, "sweep.x", "log:1"),
        ({"values": {"x": "1, 2"}, "metric": "zeta"}, "sweep.goal", "Add minimize"),
        ({"values": {"x": "int:0:1"}}, "trials", "trials"),
        ({"array": "3-1"}, "sweep.array", "from a smaller number"),
        (
            {"array": "1-3", "values": {"x": "1"}},
            "sweep.array",
            "--sweep cannot be combined with --array",
        ),
        ({"values": {"x": "1, two"}}, "sweep.x", "`x` must be a whole number"),
        ({"values": {"x": "1 … 9"}, "trials": 2}, "sweep.x", "Write int:1:9."),
        ({"values": {"x": "1, 2"}, "method": "tpe", "trials": 2}, "metric", "needs a metric"),
        ({"values": {"x": "1, 2"}, "patience": 3}, "metric", "needs a metric"),
    ],
)
def test_invalid_sweep_is_refused_with_field(
    server: NotebookServer, sweep: dict[str, object], field: str, words: str
) -> None:
    asked = body()
    asked["cells"][1] |= {"source": "x = 20", "tags": ["parameters"]}
    answer = made(server.page.post("benchpool/prepare", json={**asked, "sweep": sweep}))
    assert (answer["refusal"]["field"], answer["sweep"]) == (field, None)
    assert words in answer["refusal"]["message"]


def test_script_sweep_passes_values_as_arguments(
    server: NotebookServer, pool: Served, tmp_path: Path
) -> None:
    (server.root / "train.py").write_text("import sys; print(sys.argv[1:])")
    asked = {"kind": "script", "path": "train.py", "gpus": 1}
    asked["sweep"] = {"values": {"lr": "0.1"}, "metric": "loss", "goal": "minimize"}
    answer = made(server.page.post("benchpool/prepare", json=asked))
    assert "--sweep lr=0.1 --minimize --metric loss train.py" in answer["command"]
    first = made(server.page.post("benchpool/send", json={**asked, "key": new_key()}))
    with pool.client("susan") as client:
        assert client.wait(first["id"]).state is State.SUCCEEDED
        assert client.log(first["id"]).data == b"['--lr=0.1']\n"
