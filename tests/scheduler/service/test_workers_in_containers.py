"""What a worker in a container is started with: nothing of the scheduler's own machine."""

from __future__ import annotations

from pathlib import Path

from benchpool_scheduler.contract import JobSubmission, NotebookEntry, ScriptEntry, SnapshotFile
from benchpool_scheduler.core.states import JobState
from benchpool_scheduler.hub import StaticDirectory
from benchpool_scheduler.runtime import Launch
from benchpool_scheduler.service import Containers, SystemClock
from benchpool_scheduler.service.launching import Launcher
from benchpool_scheduler.service.site import Site
from benchpool_scheduler.store.records import AttemptRecord, JobRecord, WorkerRecord
from benchpool_scheduler.testing.pools import story

JOB, SHA = "j" * 26, "ab" * 32


def launch(submission: JobSubmission, containers: Containers | None = None) -> Launch:
    site = Site(
        configuration=story(),
        clock=SystemClock(),
        directory=StaticDirectory(),
        state=Path("/var/lib/benchpool"),
        new_id=lambda: JOB,
        environment={"PROXY": "p"},
        containers=containers or Containers(),
    )
    job = JobRecord(JOB, "n", "p", "susan", JobState.STARTING, 0.0, 0.0, cpus=4, memory_gib=8)
    workers = (WorkerRecord(0, "a", ("a/0",)), WorkerRecord(1, "b", ("b/0",)))
    return Launcher(site).launch(job, AttemptRecord(JOB, 2, 0.0, workers), 1, submission)


def at_home(*nodes: str) -> Containers:
    return Containers(
        home_of=lambda user: f"claim-{user}",
        nodes_for_claim=lambda claim: frozenset(nodes) if nodes else None,
    )


def test_a_script_runs_in_a_copy_of_its_files_with_the_images_python() -> None:
    found = launch(
        JobSubmission(
            ScriptEntry("train.py", ["--lr", "1"]),
            files=[SnapshotFile("train.py", SHA, 3)],
            env={"LR": "1"},
            image="example.org/job@sha256:0",
        )
    )
    assert found.argv == ("python3", "train.py", "--lr", "1")
    assert (found.working_dir, found.claim, found.account) == (None, None, None)
    assert [file.path for file in found.files] == ["train.py"]
    assert found.image == "example.org/job@sha256:0"
    assert (found.cpus, found.memory_gib, found.gpus) == (4, 8, ("b/0",))
    assert set(found.env) == {
        *("PROXY", "PYTHONUNBUFFERED", "LR", "BENCHPOOL_JOB_ID", "BENCHPOOL_JOB_NAME"),
        *("BENCHPOOL_PROJECT", "BENCHPOOL_USER", "BENCHPOOL_ATTEMPT"),
    }


def test_a_notebook_is_fetched_and_run_where_the_home_is_mounted() -> None:
    submission = JobSubmission(
        NotebookEntry(SHA, "x.ipynb"), working_dir="/home/jovyan/lab", output_dir="/home/jovyan/r"
    )
    found = launch(submission, at_home())
    assert found.objects == (SHA,)
    assert f"/benchpool/objects/ab/{SHA}" in found.argv
    assert found.argv[found.argv.index("--cwd") + 1] == "/home/jovyan/lab"
    assert found.working_dir == Path("/home/jovyan/lab")
    assert (found.claim, found.claim_path) == ("claim-susan", "/home/jovyan")
    assert found.env["HOME"] == "/home/jovyan"


def test_without_a_home_that_all_its_nodes_can_have_it_runs_from_what_came_with_it() -> None:
    submission = JobSubmission(NotebookEntry(SHA, "x.ipynb"), working_dir="/home/jovyan/lab")
    for containers in (Containers(), at_home("a")):
        found = launch(submission, containers)
        assert (found.claim, found.working_dir) == (None, None)
        assert found.argv[found.argv.index("--cwd") + 1] == "."
    assert launch(submission, at_home("a", "b")).claim == "claim-susan"


def test_a_job_that_names_no_folder_mounts_no_home() -> None:
    assert launch(JobSubmission(ScriptEntry("t.py")), at_home()).claim is None
