"""The three phases of a pause in real pods, over HTTP and in a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from benchpool_cluster.sites import Site
from benchpool_cluster.terminals import typed
from benchpool_scheduler.contract import CommandEntry, Job, JobSubmission
from benchpool_scheduler.contract.configuration import ConfigurationEdit, Setting
from benchpool_support.waiting import until

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(1200)]

GRACE_S = 180
STEPS = """
import sys, time
from pathlib import Path
from benchpool import checkpoint

saved = checkpoint.latest()
print("begins", "with" if saved and (saved / "weights").exists() else "without", flush=True)
while not checkpoint.should_stop():
    time.sleep(0.1)
while not (saved or Path("/tmp/save").exists()):
    time.sleep(0.1)
with checkpoint.commit(467) as folder:
    (folder / "weights").write_text("w")
sys.exit(7)
"""
"""Program that saves after a stop request, as soon as the test has seen the request."""

STAYS = "import time; time.sleep(3600)"


@pytest.fixture
def long_grace(site: Site) -> Iterator[None]:
    """Extend the grace period, so that the saving phase can be observed."""
    admin = site.client("admin")
    admin.set_config(ConfigurationEdit([Setting("policy.grace_s", GRACE_S)], "to look at it"))
    yield
    admin.set_config(ConfigurationEdit([Setting("policy.grace_s", 20)], "as it was"))


def submit(site: Site, user: str, program: str, gpus: int) -> str:
    """Send a job and return its ID."""
    entry = CommandEntry(["python3", "-c", program])
    with site.client(user) as client:
        job = client.submit(JobSubmission(entry=entry, gpus=gpus, name=f"of-{user}")).id
    return job


def reached(site: Site, job: str, stage: str) -> Job:
    """Wait until a pause of susan's job is at a stage, and return the job."""
    client = site.client("susan")

    def is_there() -> bool:
        now = client.job(job).job
        return now.pause is not None and now.pause.stage == stage

    until(is_there, lambda: client.job(job), seconds=180)
    return client.job(job).job


def pause_texts(site: Site, job: str) -> tuple[str, str]:
    """Return a terminal's text for one job: in its details, and in the list of jobs."""
    shown = typed(site, "susan", "show", job)
    listed = typed(site, "susan", "jobs")
    assert (shown.returncode, listed.returncode) == (0, 0), shown.stderr + listed.stderr
    (pause,) = re.findall(r"^Pause\s+(.*?)\s*$", shown.stdout, re.MULTILINE)
    (row,) = [line for line in listed.stdout.splitlines() if job[:8] in line]
    return pause, row


def stands_in(row: str, text: str) -> bool:
    """Return whether a row contains a text, or its beginning where the list cuts it."""
    shown = row.rstrip().removesuffix("…")
    begin = shown.find(text[:12])
    return begin > 0 and (shown[begin:].startswith(text) or text.startswith(shown[begin:]))


def test_pause_phases_match_over_http_and_terminal(site: Site, long_grace: None) -> None:
    job = submit(site, "susan", STEPS, 3)
    site.wait_job(job, "running", 180)
    mine = submit(site, "joe", STAYS, 2)
    site.wait_job(mine, "running", 180)
    hers = submit(site, "jemma", STAYS, 2)

    saving = reached(site, job, "saving").pause
    assert saving is not None
    assert saving.text == "jemma needs 2 GPUs: saving"
    assert saving.until is not None
    assert (saving.until - saving.at).total_seconds() == pytest.approx(GRACE_S, abs=1)
    pause, row = pause_texts(site, job)
    with_time = r"jemma needs 2 GPUs: saving, (\d+ s|\d+ min( \d+ s)?) left"
    assert re.fullmatch(with_time, pause), pause
    assert stands_in(row, saving.text), row

    (pod,) = site.workers(job, 1)
    site.space.exec(pod["metadata"]["name"], "touch", "/tmp/save")
    saved = reached(site, job, "saved").pause
    assert saved is not None
    assert re.fullmatch(r"saved at step 467, (nothing|\d+ s) lost", saved.text), saved
    site.wait_job(hers, "running", 120)
    pause, row = pause_texts(site, job)
    assert pause == saved.text
    assert stands_in(row, saved.text), row

    with site.client("jemma") as jemma:
        jemma.cancel(hers)
    back = reached(site, job, "back")
    assert back.pause is not None
    assert (back.pause.text, back.state) == ("back: attempt 2", "running")
    pause, row = pause_texts(site, job)
    assert pause == "back: attempt 2"
    assert stands_in(row, "back: attempt 2"), row
    (cost,) = back.preemptions
    assert cost.saved_step == 467
    assert cost.restart_gpu_s is not None
    assert "estimate" not in cost.cost
    log = typed(site, "susan", "logs", job).stdout
    assert "begins with" in log, log
