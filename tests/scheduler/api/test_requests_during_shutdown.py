"""Requests in progress when the scheduler is stopped."""

from __future__ import annotations

import sqlite3
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import httpx
import msgspec
import pytest

from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_support import direct
from benchpool_support.serving import Served, served
from benchpool_support.waiting import until_async

pytestmark = pytest.mark.slow

SUBMISSION = msgspec.json.encode(
    JobSubmission(CommandEntry(["true"]), key="once", project="vision")
)


def post(service: Served) -> httpx.Response:
    headers = {"Authorization": "token susan", "Content-Type": "application/json"}
    return direct.post(f"{service.url}/api/v1/jobs", content=SUBMISSION, headers=headers)


async def until_one_is_under_way(service: Served) -> None:
    await until_async(lambda: service.api.requests_under_way != 0)


def stopped_while_the_disk_keeps_a_submission_waiting(state: Path) -> httpx.Response:
    """Return the answer to a submission whose record cannot be written before shutdown."""
    database = sqlite3.connect(state / "scheduler" / "pool.sqlite", check_same_thread=False)
    with ThreadPoolExecutor(1) as thread:
        with served(state, keep_jobs=True) as service:
            database.execute("BEGIN IMMEDIATE")  # blocks other writers
            answer: Future[httpx.Response] = thread.submit(post, service)
            answer.add_done_callback(lambda _: database.rollback())
            service.do(until_one_is_under_way(service))
        return answer.result()


def test_request_interrupted_by_shutdown_gets_retry_after(tmp_path: Path) -> None:
    with served(tmp_path):
        pass  # creates the database
    answer = stopped_while_the_disk_keeps_a_submission_waiting(tmp_path)
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "1"
    error = answer.json()["error"]
    assert error["code"] == "unavailable"
    assert error["message"] == "The scheduler is stopping. Try again in a few seconds."


def test_retry_with_same_key_creates_one_job(tmp_path: Path) -> None:
    with served(tmp_path):
        pass
    stopped_while_the_disk_keeps_a_submission_waiting(tmp_path)
    with served(tmp_path) as service, service.client("susan") as susan:
        assert post(service).status_code in (200, 201)
        assert len(susan.jobs(all_=True)) == 1
