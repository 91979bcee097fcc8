"""A job as a step of a workflow: sent once by its key, ended with the step, told at its end."""

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


def test_a_script_runs_with_its_folder_and_its_key_is_one_job(
    susan: Client, tmp_path: Path
) -> None:
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


def test_what_does_not_travel_and_code_that_chooses_gpus_are_logged(
    susan: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").write_text("import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'\n")
    (folder / ".env").write_text("KEY=1")
    job = steps.send(susan, WorkflowStep("train.py", "k", folder))
    said = [each.getMessage() for each in caplog.records if each.name == steps.__name__]
    assert [each.split(" (")[0] for each in said[:2]] == ["1 file", "left out: .env"]
    assert said[2].startswith("train.py, line 2: sets CUDA_VISIBLE_DEVICES to `0`")
    susan.wait(job.id)


def test_a_failure_says_the_reason_and_the_last_lines(susan: Client) -> None:
    raising = "for at in range(99): print('epoch', at)\nraise ValueError('the data is empty')"
    job = steps.send(susan, WorkflowStep([sys.executable, "-c", raising], "k"))
    why = steps.why_not(susan, susan.wait(job.id))
    assert why is not None
    said, *lines = why.splitlines()
    assert said.startswith(f"job {job.id[:8]}: ")
    assert "ValueError: the data is empty" in said
    assert len(lines) == steps.LAST_LINES
    assert "epoch 98" in lines


def test_a_step_that_is_ended_ends_its_job_and_one_that_has_ended_stays(susan: Client) -> None:
    job = steps.send(susan, WorkflowStep("sleep 3600", "k"))
    assert steps.cancel(susan, job.id, "Its task was ended.")
    ended = susan.wait(job.id)
    assert steps.why_not(susan, ended) == f"job {job.id[:8]} ({job.name}) was cancelled."
    done = susan.wait(steps.send(susan, WorkflowStep("true", "l")).id)
    assert not steps.cancel(susan, done.id, "Its task was ended.")
    assert susan.job(done.id).job.state == "succeeded"


def test_following_tells_the_job_and_what_it_writes_up_to_the_end(susan: Client) -> None:
    job = steps.send(susan, WorkflowStep("echo hello", "k"))
    told = list(following.follow(susan, job.id))
    assert "".join(each.text for each in told if isinstance(each, LogText)) == "hello\n"
    assert any(isinstance(each, Job) for each in told)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (WorkflowStep("", "k"), "There is nothing to run"),
        (WorkflowStep("train.py", "k"), "train.py is a script, and no folder goes along"),
        (WorkflowStep("true", "k", options={"gpu": 2}), "There is no option gpu, but after, "),
    ],
)
def test_what_cannot_be_sent_is_told_before_anything_is(
    susan: Client, step: WorkflowStep, said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        steps.send(susan, step)
    assert susan.jobs() == []
