"""Launches in containers: nothing is taken from the scheduler's own machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchpool_scheduler.contract import JobSubmission, NotebookEntry, ScriptEntry, SnapshotFile
from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.hub import StaticDirectory
from benchpool_scheduler.runtime import Launch, Pinned
from benchpool_scheduler.service import Containers, SystemClock
from benchpool_scheduler.service.execution.launching import Launcher
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.service.observed.service_settings import ServiceSettings
from benchpool_scheduler.store.records import AttemptRecord, JobRecord, WorkerRecord
from benchpool_support.pools import JOE, SUSAN, make_pool, opened, sleeper, story
from benchpool_support.scripted import ScriptedRuntime, devices

JOB, SHA = "j" * 26, "ab" * 32


def launch(submission: JobSubmission, containers: Containers | None = None) -> Launch:
    settings = ServiceSettings(
        clock=SystemClock(),
        directory=StaticDirectory(),
        state=Path("/var/lib/benchpool"),
        new_id=lambda: JOB,
        environment={"PROXY": "p"},
        containers=containers or Containers(),
    )
    job = JobRecord(
        JOB,
        "n",
        "p",
        "susan",
        JobState.STARTING,
        0.0,
        0.0,
        spec=JobSpec(cpus=4, memory_gib=8),
    )
    workers = (WorkerRecord(0, "a", ("a/0",)), WorkerRecord(1, "b", ("b/0",)))
    return Launcher(SchedulerState(settings, story())).launch(
        job, AttemptRecord(JOB, 2, 0.0, workers), 1, submission
    )


def at_home(*nodes: str) -> Containers:
    return Containers(
        home_of=lambda user: f"claim-{user}",
        nodes_for_claim=lambda claim: frozenset(nodes) if nodes else None,
    )


def test_script_runs_in_copied_files_with_image_python() -> None:
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
        *("BENCHPOOL_PROJECT", "BENCHPOOL_USER", "BENCHPOOL_ATTEMPT", "BENCHPOOL_JOB_IMAGE"),
        "WANDB_MODE",
    }


def test_notebook_runs_in_mounted_home() -> None:
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


def test_notebook_without_shared_home_runs_from_its_copy() -> None:
    submission = JobSubmission(NotebookEntry(SHA, "x.ipynb"), working_dir="/home/jovyan/lab")
    for containers in (Containers(), at_home("a")):
        found = launch(submission, containers)
        assert (found.claim, found.working_dir) == (None, None)
        assert found.argv[found.argv.index("--cwd") + 1] == "."
    assert launch(submission, at_home("a", "b")).claim == "claim-susan"


def test_job_without_folder_mounts_no_home() -> None:
    assert launch(JobSubmission(ScriptEntry("t.py")), at_home()).claim is None


# --------------------------------------------------------------------------- shown containers


def with_digests(**more: Any) -> Containers:
    """Return containers in which susan's notebook image lab/nb is pinned by digest."""

    def pinned(user: str, image: str) -> Pinned:
        if (user, image) == ("susan", "lab/nb:1"):
            return Pinned(f"lab/nb@sha256:{SHA}")
        return Pinned(image, "" if "@" in image else "no running notebook has this image")

    return Containers(pinned=pinned, **more)


def from_a_notebook(**more: Any) -> JobSubmission:
    return sleeper(image="lab/nb:1", working_dir="/home/jovyan/lab", **more)


async def test_job_keeps_notebook_image_of_submission(tmp_path: Path) -> None:
    seen = [with_digests()]
    containers = Containers(pinned=lambda user, image: seen[0].pinned(user, image))
    made = make_pool(
        tmp_path, runtime=ScriptedRuntime(devices(9)), containers=containers, images=True
    )
    async with opened(made) as pool:
        job = await pool.jobs.submit(SUSAN, from_a_notebook())
        seen[0] = Containers(pinned=lambda user, image: Pinned(image, "the notebook has ended"))
        assert pool.jobs.submission(SUSAN, job.id).image == f"lab/nb@sha256:{SHA}"
        container = pool.jobs.detail(SUSAN, job.id).container
        assert container is not None
        assert container.image == f"lab/nb@sha256:{SHA}"
        others = await pool.jobs.submit(JOE, from_a_notebook())
        assert pool.jobs.submission(JOE, others.id).image == "lab/nb:1"


async def test_preview_and_job_show_image_and_home(tmp_path: Path) -> None:
    containers = with_digests(home_of=lambda user: "home-susan" if user == "susan" else None)
    made = make_pool(
        tmp_path, runtime=ScriptedRuntime(devices(9)), containers=containers, images=True
    )
    async with opened(made) as pool:
        preview = await pool.jobs.preview(SUSAN, from_a_notebook())
        assert preview.container is not None
        assert preview.container.home
        assert preview.text.endswith(
            f" It runs in lab/nb@sha256:{SHA}; the home of susan is mounted at /home/jovyan."
        )
        container = pool.jobs.detail(
            JOE, (await pool.jobs.submit(JOE, from_a_notebook())).id
        ).container
        assert container is not None
        assert not container.home
        assert container.text == (
            "It runs in lab/nb:1, with the tag not resolved (no running notebook has this "
            "image); no volume of joe can be mounted on several machines at a time "
            "(ReadWriteMany), so it works on a copy of the files that were sent with it."
        )
        plain = (await pool.jobs.preview(SUSAN, sleeper())).container
        assert plain is not None
        assert plain.text == (
            "It runs in the image of the pool; it works on a copy of the files that were sent "
            "with it."
        )


async def test_workstation_job_has_no_container(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        preview = await pool.jobs.preview(SUSAN, sleeper())
        assert preview.container is None
        assert "It runs in" not in preview.text
        assert (
            pool.jobs.detail(SUSAN, (await pool.jobs.submit(SUSAN, sleeper())).id).container is None
        )
