"""Launches: the command, environment, account and folders of a worker, from the entry of its
job.
"""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import Literal

import pytest

from benchpool_scheduler.contract import (
    CommandEntry,
    Entry,
    JobSubmission,
    ModuleEntry,
    NotebookEntry,
    ScriptEntry,
)
from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.hub import StaticDirectory
from benchpool_scheduler.runtime import Launch
from benchpool_scheduler.service import SystemClock
from benchpool_scheduler.service.execution.launching import Launcher, NoAccount
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.service.observed.service_settings import ServiceSettings
from benchpool_scheduler.store.records import AttemptRecord, JobRecord, WorkerRecord
from benchpool_support.pools import story

JOB = "j" * 26
SHA = "ab" * 32


def launch(
    state: Path,
    submission: JobSubmission,
    user: str = "susan",
    accounts: Literal["shared", "system"] = "shared",
) -> Launch:
    settings = ServiceSettings(
        clock=SystemClock(),
        directory=StaticDirectory(),
        state=state,
        new_id=lambda: JOB,
        accounts=accounts,
        environment={"PATH": "/bin", "HOME": "/service", "USER": "service"},
    )
    job = JobRecord(
        id=JOB,
        name="n",
        project="p",
        user=user,
        state=JobState.STARTING,
        submitted=0.0,
        queued_since=0.0,
        spec=JobSpec(time_limit_s=60),
    )
    workers = (WorkerRecord(0, "a", ("g0",)), WorkerRecord(1, "b", ("g1",)))
    attempt = AttemptRecord(JOB, 3, 0.0, workers, port=20007)
    return Launcher(SchedulerState(settings, story())).launch(job, attempt, 1, submission)


@pytest.mark.parametrize(
    ("entry", "argv"),
    [
        (ScriptEntry("a/train.py", ["--lr", "1"]), ("/py", "a/train.py", "--lr", "1")),
        (ModuleEntry("pkg.train", ["x"]), ("/py", "-m", "pkg.train", "x")),
        (CommandEntry(["make", "all"]), ("make", "all")),
    ],
)
def test_entry_becomes_command(tmp_path: Path, entry: Entry, argv: tuple[str, ...]) -> None:
    found = launch(tmp_path, JobSubmission(entry=entry, interpreter="/py"))
    assert found.argv == argv


def test_notebook_runs_with_its_own_interpreter(
    tmp_path: Path,
) -> None:
    submission = JobSubmission(
        entry=NotebookEntry(SHA, "x.ipynb"), interpreter="/nb/python", working_dir="/home/s"
    )
    found = launch(tmp_path, submission)
    assert found.argv == (
        *(sys.executable, "-P", "-m", "benchpool.runner", "notebook"),
        *("--notebook", str(tmp_path / "objects" / "ab" / SHA), "--name", "x.ipynb"),
        *("--interpreter", "/nb/python", "--cwd", "/home/s"),
        *("--output", str(tmp_path / "jobs" / JOB / "output")),
    )
    assert found.working_dir == Path("/home/s")


def test_gang_worker_gets_nodes_port_limit_and_identity(tmp_path: Path) -> None:
    found = launch(tmp_path, JobSubmission(entry=CommandEntry(["true"]), env={"LR": "1"}))
    assert (found.worker.attempt, found.worker.worker) == (3, 1)
    assert (found.nodes, found.gpus, found.port) == (("a", "b"), ("g1",), 20007)
    assert (found.time_limit_s, found.grace_s) == (60, 20)
    assert dict(found.env) == {
        "PATH": "/bin",
        "HOME": "/service",
        "USER": "service",
        "PYTHONUNBUFFERED": "1",
        "LR": "1",
        "BENCHPOOL_JOB_ID": JOB,
        "BENCHPOOL_JOB_NAME": "n",
        "BENCHPOOL_PROJECT": "p",
        "BENCHPOOL_USER": "susan",
        "BENCHPOOL_ATTEMPT": "3",
        "WANDB_MODE": "disabled",
    }


@pytest.mark.parametrize("user", ["..", ".", "a/b", "../../etc"])
def test_home_requires_plain_user_name(tmp_path: Path, user: str) -> None:
    (tmp_path / "homes" / "susan").mkdir(parents=True)
    (tmp_path / "homes" / "a" / "b").mkdir(parents=True)
    job = JobSubmission(entry=CommandEntry(["true"]))
    assert launch(tmp_path, job).env["HOME"] == str(tmp_path / "homes" / "susan")
    assert launch(tmp_path, job, user=user).env["HOME"] == "/service"


def test_first_job_creates_home(tmp_path: Path) -> None:
    job = JobSubmission(entry=CommandEntry(["true"]))
    assert launch(tmp_path, job).env["HOME"] == "/service", "nobody has homes here"
    (tmp_path / "homes").mkdir()
    home = tmp_path / "homes" / "susan"
    assert launch(tmp_path, job).env["HOME"] == str(home)
    assert home.is_dir()


def test_system_account_runs_worker_as_its_user(tmp_path: Path) -> None:
    me = getpass.getuser()
    source = tmp_path / "objects" / "ab" / SHA
    source.parent.mkdir(parents=True)
    source.write_text("{}")
    submission = JobSubmission(entry=NotebookEntry(SHA, "x.ipynb"))
    found = launch(tmp_path, submission, user=me, accounts="system")
    copy = tmp_path / "jobs" / JOB / "notebook.ipynb"
    assert (found.account, found.env["USER"]) == (me, me)
    assert str(copy) in found.argv
    assert (copy.read_text(), copy.stat().st_mode & 0o777) == ("{}", 0o600)
    with pytest.raises(NoAccount, match="this machine has no account 'no-such-user'"):
        launch(tmp_path, submission, user="no-such-user", accounts="system")
