"""Jobs through the real HTTP interface, run by the real local runtime."""

from __future__ import annotations

import sys

import msgspec
import pytest

from benchpool_scheduler.contract import CommandEntry, Job, JobSubmission, State
from benchpool_scheduler.errors import NotFound, Refused
from benchpool_support import direct
from benchpool_support.serving import Served

pytestmark = pytest.mark.slow


def command(program: str, **rest: object) -> JobSubmission:
    entry = CommandEntry([sys.executable, "-c", program])
    return msgspec.convert({"entry": msgspec.to_builtins(entry), **rest}, JobSubmission)


def test_submitted_job_runs_and_returns_log_and_exit_code(service: Served) -> None:
    with service.client("susan") as susan:
        job = susan.submit(command("print('hello'); raise SystemExit(3)"))
        ended = susan.wait(job.id)
        log = susan.log(job.id)
    assert (ended.state, ended.exit_code) == (State.FAILED, 3)
    assert log.data == b"hello\n"
    assert log.ended


def test_repeated_key_returns_same_job_with_200(service: Served) -> None:
    body = msgspec.json.encode(command("pass", key="again"))
    headers = {"Authorization": "token susan", "Content-Type": "application/json"}
    first, second = (
        direct.post(f"{service.url}/api/v1/jobs", content=body, headers=headers) for _ in range(2)
    )
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["id"] == second.json()["id"]


def test_unique_id_prefix_is_accepted(service: Served) -> None:
    with service.client("susan") as susan:
        job = susan.submit(command("pass"))
        assert susan.job(job.id[:8]).job.id == job.id


def test_jobs_of_other_users_are_not_found(service: Served) -> None:
    with service.client("susan") as susan, service.client("joe") as joe:
        job = susan.submit(command("pass"))
        assert joe.jobs(all_=True) == []
        with pytest.raises(NotFound):
            joe.job(job.id)
        with pytest.raises(NotFound):
            joe.cancel(job.id)


def test_lead_sees_and_cancels_project_jobs(service: Served) -> None:
    with service.client("susan") as susan, service.client("jemma") as jemma:
        job = susan.submit(command("import time; time.sleep(600)"))
        assert [one.id for one in jemma.jobs(all_=True)] == [job.id]
        jemma.cancel(job.id, "the reviewers wait")
        assert susan.wait(job.id).state is State.CANCELLED


def test_ended_job_cannot_be_paused(service: Served) -> None:
    with service.client("susan") as susan:
        job = susan.submit(command("pass"))
        susan.wait(job.id)
        with pytest.raises(Refused):
            susan.pause(job.id)


def test_paused_job_stays_paused_until_resumed(service: Served) -> None:
    program = "import os, time; time.sleep(600 if os.environ['BENCHPOOL_ATTEMPT'] == '1' else 0)"
    with service.client("susan") as susan:
        job = susan.submit(command(program))
        wait_for(susan.job, job.id, State.RUNNING, service)
        susan.pause(job.id)
        wait_for(susan.job, job.id, State.PAUSED, service)
        susan.resume(job.id)
        ended = susan.wait(job.id)
    assert (ended.state, ended.attempt) == (State.SUCCEEDED, 2)


@pytest.mark.parametrize(
    ("name", "status"), [("new", 200), ("n" * 100, 200), ("", 422), ("n" * 101, 422), (3, 422)]
)
def test_rename_changes_name_and_validates_it(service: Served, name: object, status: int) -> None:
    with service.client("susan") as susan:
        job = susan.submit(command("pass", name="old"))
        answer = direct.post(
            f"{service.url}/api/v1/jobs/{job.id}/rename",
            json={"name": name},
            headers={"Authorization": "token susan"},
        )
        assert answer.status_code == status, answer.text
        assert susan.job(job.id).job.name == (name if status == 200 else "old")
        if status == 422:
            assert answer.json()["error"]["field"] == "name"


def test_rename_of_ended_job_notifies_watchers(service: Served) -> None:
    with service.client("susan") as susan:
        job = susan.submit(command("pass", name="old"))
        susan.wait(job.id)
        events = susan.events()
        assert next(events).kind == "open"
        assert susan.rename(job.id, "new").name == "new"
        changed = next(event.data for event in events if event.kind == "job")
        assert isinstance(changed, Job)
        assert (changed.name, changed.state) == ("new", State.SUCCEEDED)


def test_submission_can_be_read_back(service: Served) -> None:
    with service.client("susan") as susan:
        sent = command("pass", name="mine", env={"A": "1"})
        job = susan.submit(sent)
        back = susan.submission(job.id)
    assert (back.entry, back.name, back.env) == (sent.entry, "mine", {"A": "1"})


def wait_for(read: object, id_: str, state: State, service: Served) -> Job:
    """Wait by events until the job has this state."""
    with service.client("susan") as client:
        for event in client.events():
            job = event.data if isinstance(event.data, Job) else client.job(id_).job
            if job.id == id_ and job.state is state:
                return job
    raise AssertionError


def test_pool_status_can_omit_gpu_list(
    service: Served,
) -> None:
    headers = {"Authorization": "token susan"}
    url = f"{service.url}/api/v1/status"
    full, brief = (
        direct.get(url, headers=headers, params=params).json() for params in ({}, {"gpus": "false"})
    )
    assert (len(full["gpus"]), brief["gpus"]) == (5, [])
    assert full["counts"] == brief["counts"]
