"""A job as a step of a workflow: sent once per key, ended with the step, reported at its end."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchpool_scheduler.client import Client, following, steps
from benchpool_scheduler.client.steps import WorkflowStep
from benchpool_scheduler.contract import Job, LogText
from benchpool_scheduler.errors import InvalidInput
from benchpool_support.serving import served

pytestmark = pytest.mark.slow


@pytest.fixture
def susan(tmp_path: Path) -> Iterator[Client]:
    with served(tmp_path / "state") as service, service.client("susan") as client:
        yield client


def test_script_runs_with_folder_and_key_makes_one_job(susan: Client, tmp_path: Path) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").write_text("import rates; print('rate', rates.RATE)\n")
    (folder / "rates.py").write_text("RATE = 0.1\n")
    step = WorkflowStep("train.py", steps.key_of("test", 1), folder, options={"name": "train"})
    first, second = steps.send(susan, step), steps.send(susan, step)
    assert first.id == second.id
    ended = susan.wait(first.id)
    assert steps.why_not(susan, ended) is None
    assert steps.result_of(ended, None)["state"] == "succeeded"
    assert susan.log(first.id).data == b"rate 0.1\n"


def test_excluded_files_and_gpu_selection_are_logged(
    susan: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").write_text("import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'\n")
    (folder / ".env").write_text("KEY=1")
    job = steps.send(susan, WorkflowStep("train.py", "k", folder))
    messages = [each.getMessage() for each in caplog.records if each.name == steps.__name__]
    assert [each.split(" (")[0] for each in messages[:2]] == [
        "sent with the job: 1 file",
        "left out: .env",
    ]
    assert messages[2].startswith("train.py, line 2: sets CUDA_VISIBLE_DEVICES to `0`")
    susan.wait(job.id)


def test_failure_shows_reason_and_last_log_lines(susan: Client) -> None:
    raising = "for at in range(99): print('epoch', at)\nraise ValueError('the data is empty')"
    job = steps.send(susan, WorkflowStep([sys.executable, "-c", raising], "k"))
    why = steps.why_not(susan, susan.wait(job.id))
    assert why is not None
    reason, *lines = why.splitlines()
    assert reason.startswith(f"job {job.id[:8]}: ")
    assert "ValueError: the data is empty" in reason
    assert len(lines) == steps.LAST_LINES
    assert "epoch 98" in lines


def test_ended_step_cancels_job_but_keeps_finished_job(susan: Client) -> None:
    job = steps.send(susan, WorkflowStep("sleep 3600", "k"))
    assert steps.cancel(susan, job.id, "Its task was ended.")
    ended = susan.wait(job.id)
    assert steps.why_not(susan, ended) == f"job {job.id[:8]} ({job.name}) was cancelled."
    done = susan.wait(steps.send(susan, WorkflowStep("true", "l")).id)
    assert not steps.cancel(susan, done.id, "Its task was ended.")
    assert susan.job(done.id).job.state == "succeeded"


def test_following_step_logs_states_and_output_to_end(susan: Client) -> None:
    job = steps.send(susan, WorkflowStep("echo hello", "k"))
    events = list(following.follow(susan, job.id))
    assert "".join(each.text for each in events if isinstance(each, LogText)) == "hello\n"
    assert any(isinstance(each, Job) for each in events)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (WorkflowStep("", "k"), "There is nothing to run"),
        (WorkflowStep("train.py", "k"), "train.py is a script, but no folder is sent"),
        (WorkflowStep("true", "k", options={"gpu": 2}), "There is no option gpu. Options: after, "),
    ],
)
def test_unsendable_step_is_rejected_before_upload(
    susan: Client, step: WorkflowStep, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        steps.send(susan, step)
    assert susan.jobs() == []
