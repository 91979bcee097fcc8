"""Schedules in the dialog: times previewed and created, with a real pool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchpool_support.dialog import body, made, new_key, prepared
from benchpool_support.notebook_server import NotebookServer
from benchpool_support.serving import Served

pytestmark = pytest.mark.slow

NIGHT = {"when": "night at 2", "zone": "Europe/Berlin"}


def test_cells_are_sent_at_set_times(server: NotebookServer, pool: Served) -> None:
    asked = body(schedule=NIGHT, key=new_key())
    answer = prepared(server.page, asked, lambda it: it["schedule"])
    times = answer["schedule"]["next"]
    assert [time[11:16] for time in times] == ["02:00"] * 5
    assert answer["schedule"]["cron"] == "0 2 * * *"
    assert answer["command"] == ("%%train --gpus 1 --every 'night at 2' --zone Europe/Berlin")
    first, again = (made(server.page.post("benchpool/schedule", json=asked)) for _ in range(2))
    assert (first["id"], first["next"]) == (again["id"], times)
    with pool.client("susan") as client:
        assert client.schedule(first["id"]).name == "book"
        assert [job.name for job in client.jobs() if job.name == "book"] == []
        client.remove_schedule(first["id"])


def test_script_of_schedule_runs_from_copy_of_folder(server: NotebookServer, pool: Served) -> None:
    Path(server.root, "nightly.py").write_text("print('again')")
    asked = {"kind": "script", "path": "nightly.py", "gpus": 1, "schedule": NIGHT}
    sent = made(server.page.post("benchpool/schedule", json={**asked, "key": new_key()}))
    assert (sent["name"], sent["when"], sent["zone"]) == ("nightly", *NIGHT.values())


@pytest.mark.parametrize(
    ("more", "field", "words"),
    [
        ({"schedule": {"when": "sometimes"}}, "when", "'sometimes' is not a time"),
        ({"schedule": {"when": "hour", "zone": "Berlin"}}, "zone", "There is no time zone"),
        (
            {"schedule": NIGHT, "sweep": {"array": "1-3"}},
            "when",
            "A sweep or an array cannot be sent at set times.",
        ),
        ({"schedule": NIGHT, "parameters": {"x": "1, 2"}}, "when", "cannot be sent at set times"),
    ],
)
def test_impossible_schedule_is_refused_with_field(
    server: NotebookServer, more: dict[str, Any], field: str, words: str
) -> None:
    answer = made(server.page.post("benchpool/prepare", json=body(**more)))
    assert (answer["refusal"]["field"], answer["schedule"]) == (field, None)
    assert words in answer["refusal"]["message"]
    refused = server.page.post("benchpool/schedule", json=body(**more, key=new_key()))
    assert (refused.status_code, refused.json()["error"]["field"]) == (422, field)
