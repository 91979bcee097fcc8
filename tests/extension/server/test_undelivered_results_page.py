"""Results that cannot be written to their folder: the page shows where they are."""

from __future__ import annotations

import pytest

from benchpool_scheduler.contract import State
from benchpool_support.dialog import body, made, new_key
from benchpool_support.notebook_server import NotebookServer
from benchpool_support.serving import Served

pytestmark = pytest.mark.slow


def test_undelivered_results_are_located_and_fetched_later(
    server: NotebookServer, pool: Served
) -> None:
    (server.root / "go.py").write_text("open('new', 'w').write('made')")
    (server.root / "benchpool-results").write_text("in the way")
    asked = body("script", "go.py", key=new_key(), kernel_name=None)
    job = made(server.page.post("benchpool/send", json=asked))
    with pool.client("susan") as client:
        ended = client.wait(job["id"])
    assert ended.state is State.SUCCEEDED
    assert ended.reason is not None

    answer = server.page.get("benchpool/result", params={"job": job["id"]})
    error = answer.json()["error"]
    assert error["code"] == "results-not-delivered"
    assert error["message"] == f"{ended.reason.text} {ended.reason.remedy}"

    (server.root / "benchpool-results").unlink()
    result = made(server.page.get("benchpool/result", params={"job": job["id"]}))
    (new,) = [each for each in result["files"] if each.endswith("/new")]
    assert (server.root / new).read_text() == "made"
