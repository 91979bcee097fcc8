"""``benchpool shell`` on a cluster: through a worker's agent, for the job's owner only.

The API server, the service, the agent with its supervisor and the terminal are real. The agent runs
outside the node, which kwok simulates.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchpool_cluster.access import Access
from benchpool_scheduler.contract import CommandEntry, JobSubmission, kubernetes
from benchpool_scheduler.runtime.kubernetes.agent import paths
from benchpool_support import shells_of_people
from benchpool_support.agent_processes import AgentProcess
from benchpool_support.pods_of_jobs import running
from benchpool_support.replicas import Replica, Site

pytestmark = pytest.mark.kubernetes

SLEEPER = JobSubmission(entry=CommandEntry(["sh", "-c", "echo up; exec sleep 3600"]), gpus=1)


@pytest.fixture
def replica(site: Site) -> Replica:
    """Return the only replica of the service."""
    return site.started()


@pytest.fixture
def job(
    access: Access, site: Site, replica: Replica, tmp_path: Path, nodes: tuple[str, ...]
) -> Iterator[str]:
    """Yield a running job of susan, with an agent configured by its pod's Secret."""
    susan = replica.client("susan")
    id_ = susan.submit(SLEEPER).id
    running(access, site, id_)
    name = kubernetes.attempt_name(id_, 1)
    secret = access.get(f"/api/v1/namespaces/{site.namespace}/secrets/{name}")["data"]
    config = json.loads(gzip.decompress(b64decode(secret[paths.CONFIG_FILE])))
    token = b64decode(secret[paths.TOKEN.format(index=0)]).decode()
    config["url"] = f"{replica.url}/workers"
    agent = AgentProcess(tmp_path / "pod", config, 0, token)
    agent.start()
    assert next(susan.follow_log(id_)).text == "up\n", "its command runs"
    yield id_
    susan.cancel(id_, "the test is over")
    agent.end()


def variables(replica: Replica, person: str) -> dict[str, str]:
    return shells_of_people.environ(replica.url, person)


def test_shell_opens_in_worker_for_owner(replica: Replica, job: str) -> None:
    with shells_of_people.begun(variables(replica, "susan"), job) as terminal:
        terminal.type(b'echo "<$BENCHPOOL_JOB_ID $BENCHPOOL_ATTEMPT>"\n')
        terminal.until(f"<{job} 1>".encode())
        shells_of_people.obeys(terminal)
        terminal.type(b"\x1c")  # Ctrl-\ ends a program that catches Ctrl-C
        terminal.type(b"exit 7\n")
        assert terminal.end() == 7
    assert b"benchpool: The shell has ended." in terminal.printed
    (record,) = replica.client("ada").audit(action="open_shell").records
    assert (record.actor, record.target, record.outcome) == ("susan", job, "done")


def test_shell_is_rejected_for_administrator_and_other_users(replica: Replica, job: str) -> None:
    message = shells_of_people.refused(variables(replica, "ada"), job)
    assert "only susan may open a shell in it" in message
    assert "only susan" not in shells_of_people.refused(variables(replica, "joe"), job)
    records = replica.client("ada").audit(action="open_shell").records
    assert {it.outcome for it in records} <= {"refused"}


def test_shell_ends_with_job(replica: Replica, job: str) -> None:
    with shells_of_people.begun(variables(replica, "susan"), job) as terminal:
        replica.client("susan").cancel(job, "enough")
        assert terminal.end() == 1
    output = terminal.printed.decode()
    assert "ended with attempt 1" in output or "ended by a signal, as at the end of its" in output
