"""A real Hub renames a user whose notebook server holds a GPU and whose job runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchpool_support.waiting import until
from benchpool_support.workstation import RunningWorkstation, start

pytestmark = pytest.mark.slow

CONFIGURATION = """\
version: 1
build: {default: 0, users: {susan: 2, sue: 2}, reserve: 4}
projects:
  - {name: research, quota: 3, members: [susan, sue]}
"""


@pytest.fixture
def own(tmp_path: Path) -> Iterator[RunningWorkstation]:
    config = tmp_path / "pool.yaml"
    config.write_text(CONFIGURATION)
    with start(tmp_path / "state", config=config) as running:
        running.add_user("susan")
        yield running


def test_bench_and_job_survive_user_rename(
    own: RunningWorkstation,
) -> None:
    own.start_server("susan", gpus=2)
    (held,) = own.leases("susan")
    as_susan = own.scheduler_as(own.token_of("susan"))
    entry = {"kind": "command", "argv": ["sleep", "infinity"]}
    sent = as_susan.post("/jobs", json={"entry": entry, "gpus": 1})
    assert sent.status_code == 201, sent.text
    own.wait_job(sent.json()["id"], "running")

    renamed = own.hub.patch("/users/susan", json={"name": "sue"})
    assert renamed.status_code == 200, renamed.text
    refused = own.ask_server("sue", "two", gpus=1)
    assert refused.status_code == 409
    assert re.search(r"build quota of sue: 2 .*2 held", refused.json()["message"])
    (now,) = own.leases("sue")
    assert (now["id"], now["gpus"], own.leases("susan")) == (held["id"], held["gpus"], [])

    until(
        lambda: " ".join(own.scheduler.get("/status").json()["health"]["problems"]),
        "administrators are told of the job of the old name",
        holds=lambda problems: (
            "renamed susan to sue, and 1 job sent under the old name" in problems
        ),
    )
    own.stop_server("sue")
    own.wait_leases("sue", 0)
