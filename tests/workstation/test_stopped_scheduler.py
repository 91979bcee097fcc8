"""Clients of a scheduler stopped by a signal get a message in time and later an answer."""

from __future__ import annotations

import json
import os
import queue
import signal
import threading

import pytest

from benchpool_scheduler.client import Client, Credentials
from benchpool_scheduler.contract import CommandEntry, Job, JobSubmission, Status
from benchpool_scheduler.errors import Unavailable
from benchpool_support.waiting import PATIENCE_S
from benchpool_support.workstation import RunningWorkstation

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

SLEEPER = JobSubmission(entry=CommandEntry(["true"]), name="once", key="sent-once")


def direct(up: RunningWorkstation) -> Credentials:
    """Return credentials for the scheduler itself, without the proxy."""
    port = json.loads((up.state / "hub" / "facts.json").read_text())["ports"]["scheduler"]
    return Credentials(f"http://127.0.0.1:{port}/services/benchpool", up.token_of("susan"))


def test_submission_to_stopped_scheduler_creates_one_job(
    up: RunningWorkstation,
) -> None:
    messages: queue.Queue[str] = queue.Queue()
    jobs: queue.Queue[Job] = queue.Queue()
    pid = up.scheduler_pid()
    with Client(direct(up), on_wait=messages.put) as client:
        client.status()  # the connection that it is tied to
        os.kill(pid, signal.SIGSTOP)
        try:
            sending = threading.Thread(target=lambda: jobs.put(client.submit(SLEEPER)))
            sending.start()
            message = messages.get(timeout=PATIENCE_S)
            assert "took the request and does not answer" in message
            assert "trying again for up to 2 min" in message
        finally:
            os.kill(pid, signal.SIGCONT)
        job = jobs.get(timeout=60)
        sending.join()
        assert [one.id for one in client.jobs() if one.name == "once"] == [job.id]


def test_submission_without_retry_fails_with_advice(up: RunningWorkstation) -> None:
    pid = up.scheduler_pid()
    with Client(direct(up), keyed_patience_s=0.0) as client:
        client.status()
        os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(Unavailable, match="requests with the same key count once"):
                client.submit(SLEEPER)
        finally:
            os.kill(pid, signal.SIGCONT)


def test_change_during_stop_is_applied_once(
    up: RunningWorkstation,
) -> None:
    messages: queue.Queue[str] = queue.Queue()
    pid = up.scheduler_pid()
    with Client(direct(up), on_wait=messages.put) as client:
        job = client.submit(JobSubmission(entry=CommandEntry(["sleep", "600"]))).id
        os.kill(pid, signal.SIGSTOP)
        try:
            ending = threading.Thread(target=lambda: client.cancel(job))
            ending.start()
            assert "trying again for up to 30 s" in messages.get(timeout=PATIENCE_S)
        finally:
            os.kill(pid, signal.SIGCONT)
        ending.join(60)
        assert up.wait_job(job, "cancelled")["ended"] is not None


def test_query_during_stop_is_retried(up: RunningWorkstation) -> None:
    messages: queue.Queue[str] = queue.Queue()
    answered: queue.Queue[Status] = queue.Queue()
    pid = up.scheduler_pid()
    with Client(direct(up), on_wait=messages.put) as client:
        client.status()
        os.kill(pid, signal.SIGSTOP)
        try:
            asking = threading.Thread(target=lambda: answered.put(client.status()))
            asking.start()
            message = messages.get(timeout=PATIENCE_S)
            assert "took the request and does not answer; trying again for up to 30 s" in message
        finally:
            os.kill(pid, signal.SIGCONT)
        assert answered.get(timeout=60).health.ok
        asking.join()
