"""Tags: short labels that a job gets at submit, used to filter lists."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.resources.jobs import TrainingJobSpec
from benchpool_scheduler.resources.submissions import as_spec, asked_in
from benchpool_support import direct
from benchpool_support.serving import Served

Benchpool = Callable[..., Any]


def test_job_keeps_tags_and_is_found_by_each(benchpool: Benchpool, folder: Path) -> None:
    sent = benchpool("submit", "--tag", "sweep", "--tag", "lr-3", "--json", "--", "true").json
    benchpool("submit", "--tag", "lr-3", "--name", "other", "--", "true")
    assert sent["tags"] == ["sweep", "lr-3"]
    assert [one["id"] for one in benchpool("jobs", "--tag", "sweep", "--json").json] == [sent["id"]]
    assert len(benchpool("jobs", "--tag", "lr-3", "--json").json) == 2
    assert benchpool("jobs", "--tag", "none", "--json").json == []
    assert "sweep, lr-3" in benchpool("show", sent["id"]).out


def test_tags_work_over_http_and_in_python(service: Served) -> None:
    with service.client("susan") as susan:
        job = susan.submit(JobSubmission(CommandEntry(["true"]), tags=("a",)))
        assert [one.tags for one in susan.jobs(tag="a")] == [("a",)]
        assert susan.jobs(tag="b") == []
    headers = {"Authorization": "token susan"}
    answer = direct.get(f"{service.url}/api/v1/jobs?tag=a", headers=headers).json()
    assert [one["id"] for one in answer] == [job.id]


@pytest.mark.parametrize(
    "tags", [["x" * 64], [""], ["a b"], ["a,b"], [str(n) for n in range(17)], "a"], ids=repr
)
def test_invalid_tags_are_rejected(service: Served, tags: object) -> None:
    body = {"entry": {"kind": "command", "argv": ["true"]}, "tags": tags}
    headers = {"Authorization": "token susan"}
    answer = direct.post(f"{service.url}/api/v1/jobs", json=body, headers=headers)
    assert answer.status_code == 422
    assert "tags" in answer.json()["error"]["message"]


def test_sixteen_tags_of_63_characters_are_accepted(service: Served) -> None:
    tags = tuple(str(n).rjust(63, "x") for n in range(16))
    with service.client("susan") as susan:
        assert susan.submit(JobSubmission(CommandEntry(["true"]), tags=tags)).tags == tags


def test_training_job_object_carries_tags() -> None:
    spec = as_spec(JobSubmission(CommandEntry(["true"]), tags=("a", "b")), "susan", "n", "p")
    encoded = msgspec.json.encode(spec)
    assert msgspec.json.decode(encoded)["tags"] == ["a", "b"]
    assert asked_in(msgspec.json.decode(encoded, type=TrainingJobSpec)) == JobSpec(tags=("a", "b"))
