"""Submissions are answered within the limit, whichever part of the pool is silent.

The parts are a leader stopped by a signal, a change of leader, and a silent API server. Clients are
asked in time to retry, and each key becomes exactly one job.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx
import msgspec
import pytest

from benchpool_cluster.access import Access
from benchpool_cluster.control_plane import ControlPlane
from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_support import direct
from benchpool_support.replicas import Replica, Site
from benchpool_support.waiting import until

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(400)]

LIMIT_S = 30.0
"""Limit of an answer, in seconds: far above the product's own limit, and below the lease."""
SENDERS = 4
LEASE_S = "45"
"""Lease of a leader, in seconds.

A leader continues for 30 s without an API server; with the chart's lease it would be 10 s.
"""


@dataclass
class Answers:
    """Answers to clients that submit continuously, each with one key until it is accepted.

    Attributes:
        jobs: Accepted jobs by key.
        wrong: Answers other than an acceptance or a refusal with ``Retry-After``, in time.
    """

    counts: Counter[str] = field(default_factory=Counter)
    jobs: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    enough: threading.Event = field(default_factory=threading.Event)

    def send(self, url: str, number: int) -> None:
        """Submit repeatedly; complete the last submission."""
        with direct.Client(trust_env=False, timeout=LIMIT_S) as client:
            turn = 0
            while not self.enough.is_set():
                turn += 1
                self._until_accepted(client, url, f"{number}-{turn}")

    def _until_accepted(self, client: httpx.Client, url: str, key: str) -> None:
        body = msgspec.json.encode(JobSubmission(entry=CommandEntry(["train"]), key=key))
        headers = {"Authorization": "token susan", "Content-Type": "application/json"}
        while key not in self.jobs:
            try:
                answer = client.post(f"{url}/api/v1/jobs", content=body, headers=headers)
            except httpx.HTTPError as error:
                self.wrong.append(f"no answer within {LIMIT_S:g} s: {error!r}")
                return
            if answer.is_success:
                self.counts["accepted"] += 1
                self.jobs[key] = answer.json()["id"]
            elif answer.status_code == 503 and "Retry-After" in answer.headers:
                self.counts[answer.json()["error"]["code"]] += 1
                time.sleep(0.5)  # slightly sooner than the answer requests
            else:
                self.wrong.append(f"{answer.status_code} {answer.text}")
                return

    def hold(self) -> None:
        """Fail unless all answers came in time and are correct."""
        print(f"{dict(self.counts)}")
        assert self.wrong == []

    @property
    def refused(self) -> int:
        """Return the number of answers that requested a retry."""
        return self.counts.total() - self.counts["accepted"]


@contextmanager
def sending(*urls: str) -> Iterator[Answers]:
    """Let clients submit continuously at these addresses."""
    answers = Answers()
    threads = [
        threading.Thread(target=answers.send, args=(urls[number % len(urls)], number), daemon=True)
        for number in range(SENDERS)
    ]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        answers.enough.set()
        for thread in threads:
            thread.join(200)
    assert not any(thread.is_alive() for thread in threads)


def made(access: Access, site: Site) -> dict[str, str]:
    """Return the jobs of the API server by key; fail if a key has two jobs."""
    path = f"/apis/benchpool.io/v1/namespaces/{site.namespace}/trainingjobs"
    found = [(one["spec"]["key"], one["metadata"]["name"]) for one in access.get(path)["items"]]
    assert len(dict(found)) == len(found)
    return dict(found)


@pytest.fixture
def both(site: Site) -> tuple[Replica, Replica]:
    """Return the leader and a standby replica."""
    site.more = {"BENCHPOOL_LEADER_LEASE_S": LEASE_S}
    leader = site.started("first")
    standby = site.start("second")
    until(standby.serves)
    return leader, standby


def test_stopped_leader_does_not_delay_submissions(
    access: Access, site: Site, both: tuple[Replica, Replica]
) -> None:
    leader, standby = both
    with sending(standby.url) as answers:
        until(lambda: len(answers.jobs) > SENDERS)
        leader.send(signal.SIGSTOP)
        before = len(answers.jobs)
        until(standby.leads)
        until(lambda: len(answers.jobs) > before + SENDERS)
        leader.send(signal.SIGCONT)
        leader.ended()
    answers.hold()
    assert made(access, site) == answers.jobs


def test_killed_leader_does_not_delay_submissions(
    access: Access, site: Site, both: tuple[Replica, Replica]
) -> None:
    leader, standby = both
    with sending(standby.url) as answers:
        until(lambda: len(answers.jobs) > SENDERS)
        leader.kill()
        before = len(answers.jobs)
        until(standby.leads)
        until(lambda: len(answers.jobs) > before + SENDERS)
    answers.hold()
    assert made(access, site) == answers.jobs


def test_stopped_api_server_does_not_delay_answers(
    plane: ControlPlane, access: Access, site: Site, both: tuple[Replica, Replica]
) -> None:
    leader, standby = both
    with sending(standby.url) as answers:
        until(lambda: len(answers.jobs) > SENDERS)
        plane.processes.freeze("kube-apiserver")
        try:
            leader.ended()  # it could not renew its lease
            refused = answers.refused  # no replica leads
            until(lambda: answers.refused > refused + SENDERS)
        finally:
            plane.processes.thaw("kube-apiserver")
        before = len(answers.jobs)
        until(lambda: len(answers.jobs) > before + SENDERS)
    answers.hold()
    # Answers come from the leader until its lease ends, or afterwards; both may happen.
    assert answers.counts["not-stored-yet"] + answers.counts["standing-by"] > 0
    assert made(access, site) == answers.jobs


def test_short_api_server_stop_loses_no_job(
    plane: ControlPlane, access: Access, site: Site, both: tuple[Replica, Replica]
) -> None:
    leader, standby = both
    with sending(leader.url, standby.url) as answers:
        until(lambda: len(answers.jobs) > SENDERS)
        plane.processes.freeze("kube-apiserver")
        try:
            until(lambda: answers.refused > 0)
        finally:
            plane.processes.thaw("kube-apiserver")
        before = len(answers.jobs)
        until(lambda: len(answers.jobs) > before + SENDERS)
        assert leader.process.poll() is None
        assert not standby.leads()
    answers.hold()
    assert made(access, site) == answers.jobs
