"""``benchpool apply -f``: the same YAML on a workstation and on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchpool_scheduler.contract import State
from benchpool_support.serving import Served

pytestmark = pytest.mark.slow

Benchpool = Callable[..., Any]

JOB = """\
apiVersion: benchpool.io/v1
kind: TrainingJob
metadata: {name: nightly}
spec:
  command: [sleep, "600"]
  gpus: 1
"""
SETTINGS = """\
apiVersion: benchpool.io/v1
kind: PoolSettings
metadata: {name: default}
spec:
  build: {users: {susan: 1}}
  policy: {graceSeconds: 7}
---
apiVersion: benchpool.io/v1
kind: Project
metadata: {name: vision}
spec: {quota: 3, members: [susan], leads: [jemma], order: 0}
---
apiVersion: benchpool.io/v1
kind: Project
metadata: {name: speech}
spec: {quota: 1, members: [joe], order: 1}
"""


@pytest.fixture
def write(folder: Path) -> Callable[[str], str]:
    """Write a file in the user's folder."""

    def write_(text: str) -> str:
        file = folder / "file.yaml"
        file.write_text(text)
        return str(file)

    return write_


Write = Callable[[str], str]


def test_jobs_in_file_run_after_named_jobs(benchpool: Benchpool, write: Write) -> None:
    plot = JOB.replace("nightly", "plot").replace("spec:", "spec:\n  after: [nightly]")
    jobs = benchpool("apply", "-f", write(f"{JOB}---\n{plot}"), "--json").json["jobs"]
    assert [it["job"] for it in jobs[1]["awaits"]] == [jobs[0]["id"]]
    again = benchpool("apply", "-f", write(f"{JOB}---\n{plot}"), "--json")
    assert [job["id"] for job in again.json["jobs"]] == [job["id"] for job in jobs]


def paused(service: Served, job: str) -> None:
    """Wait until a job is paused."""
    with service.client("susan") as susan:
        for _ in susan.events():
            if susan.job(job).job.state is State.PAUSED:
                return


def test_repeated_apply_keeps_same_job(benchpool: Benchpool, write: Write, service: Served) -> None:
    first = benchpool("apply", "--json", "-f", write(JOB))
    assert first.status == 0, first.err
    job = first.json["jobs"][0]
    assert (job["name"], job["user"], job["gpus"]) == ("nightly", "susan", 1)
    again = benchpool("apply", "--json", "-f", write(JOB)).json["jobs"][0]
    assert again["id"] == job["id"]
    assert "nightly: job " in benchpool("apply", "-f", write(JOB)).out
    other = benchpool("apply", "--json", "-f", write(f"{JOB}  cpus: 1\n"))
    assert other.status == 3
    assert "another cpus" in other.json["error"]["message"]
    benchpool("cancel", job["id"])


def test_changeable_fields_can_be_applied_again(
    benchpool: Benchpool, write: Write, service: Served
) -> None:
    job = benchpool("apply", "--json", "-f", write(f"{JOB}  suspend: true\n")).json["jobs"][0]
    paused(service, job["id"])
    more = f"{JOB}  suspend: true\n  priority: 80\n  workers: 2\n  timeLimitSeconds: 90\n"
    result = benchpool("apply", "-f", write(more))
    assert "now has priority 80 and 2 workers and time limit 1 min 30 s" in result.out
    again = benchpool("apply", "--json", "-f", write(more)).json["jobs"][0]
    assert (again["id"], again["priority"], again["workers"]) == (job["id"], 80, 2)
    assert "is unchanged" in benchpool("apply", "-f", write(more)).out
    benchpool("cancel", job["id"])


def test_suspend_pauses_and_resumes_job(
    benchpool: Benchpool, write: Write, service: Served
) -> None:
    job = benchpool("apply", "--json", "-f", write(f"{JOB}  suspend: true\n")).json["jobs"][0]
    paused(service, job["id"])
    benchpool("apply", "-f", write(JOB))
    with service.client("susan") as susan:
        assert susan.job(job["id"]).job.state != "paused"
    benchpool("cancel", job["id"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (JOB.replace("gpus: 1", "gpus: lots"), "Expected `int`"),
        (JOB.replace("gpus: 1", "gpu: 1"), "unknown field `gpu`"),
        (JOB.replace("gpus: 1", "user: joe"), "you are susan"),
        (JOB.replace("gpus: 1", "script: {path: a.py}"), "exactly one of script"),
        (JOB.replace("TrainingJob", "Pod"), "can be applied"),
        (JOB.replace("{name: nightly}", "{}"), "no valid metadata.name"),
        (SETTINGS.partition("---")[2], "no PoolSettings"),
        ("version: 1\nbuild: {defualt: 1}", "line 2: build.defualt is not a known key"),
        ("a: [", "is not YAML"),
    ],
)
def test_invalid_file_is_rejected_without_changes(
    benchpool: Benchpool, write: Write, text: str, words: str
) -> None:
    result = benchpool(
        "apply", "--json", "-f", write(text), by="root" if "defualt" in text else "susan"
    )
    assert result.status in (2, 3)
    assert words in result.json["error"]["message"]
    assert benchpool("jobs", "--json").json == []


def test_settings_as_objects_equal_settings_as_file(benchpool: Benchpool, write: Write) -> None:
    refused = benchpool("apply", "-f", write(SETTINGS))
    assert refused.status == 3
    result = benchpool("apply", "--json", "-f", write(SETTINGS), by="root")
    assert result.status == 0, result.err
    changes = result.json["configuration"]["changes"]
    assert "Project vision (susan): guaranteed quota 2 → 3." in changes
    assert "Policy: grace_s 1 → 7." in changes
    plain = """\
version: 1
build: {users: {susan: 1}}
projects:
- {name: vision, quota: 3, members: [susan], leads: [jemma]}
- {name: speech, quota: 1, members: [joe]}
policy: {grace_s: 7}
"""
    same = benchpool("apply", "--json", "-f", write(plain), by="root").json["configuration"]
    assert same["changes"] == []
    both = benchpool("apply", "--json", "-f", write(f"{plain}---\n{JOB}"), by="root")
    assert both.status == 3  # root belongs to no project
