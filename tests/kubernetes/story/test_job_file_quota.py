"""Files of jobs on the scheduler's volume are counted per user, limited and deleted."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from benchpool_cluster.sites import Site
from benchpool_cluster.terminals import typed
from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_scheduler.contract.configuration import ConfigurationEdit, Setting
from benchpool_scheduler.errors import TooLarge
from benchpool_support.waiting import until

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(1200)]

GIB = 1024**3
LEAVES = """
import os, pathlib, sys
path = pathlib.Path(os.environ["BENCHPOOL_{folder}_DIR"], "large")
with path.open("wb") as file:
    os.posix_fallocate(file.fileno(), 0, {size})
sys.exit({code})
"""
KEYS = ("budgets.results_gib", "budgets.checkpoints_gib")


@pytest.fixture
def bounded(site: Site) -> Iterator[None]:
    """Limit results and checkpoints of each user to one GiB."""
    admin = site.client("admin")
    admin.set_config(ConfigurationEdit([Setting(key, 1) for key in KEYS], "disks are full"))
    yield
    admin.set_config(ConfigurationEdit([Setting(key) for key in KEYS], "as it was"))


def left(site: Site, part: str, size: int) -> str:
    """Let a job of joe leave files of this size, in bytes; return the job's ID.

    Results come from a completed job, a checkpoint from an incomplete job.
    """
    folder, code, state = ("OUTPUT", 0, "succeeded")
    if part == "checkpoints":
        folder, code, state = ("CHECKPOINT", 7, "failed")
    program = LEAVES.format(folder=folder, size=size, code=code)
    entry = CommandEntry(["python3", "-c", program])
    with site.client("joe") as joe:
        job = joe.submit(JobSubmission(entry=entry, name="large")).id
    site.wait_job(job, state, 300)
    return job


def held(site: Site) -> dict[str, int]:
    """Return the size of the files of joe's jobs by kind, in bytes."""
    return {it.part: it.bytes for it in site.client("joe").quota().files}


def test_job_files_are_counted_limited_and_deleted(site: Site, bounded: None) -> None:
    before = held(site)
    both = {"results": 4 * 1024**2, "checkpoints": 8 * 1024**2}
    small, failed = (left(site, part, size) for part, size in both.items())

    def counted() -> bool:
        now = held(site)
        return all(size <= now[it] - before[it] < size + 100_000 for it, size in both.items())

    until(counted, lambda: (before, held(site)), seconds=150)
    assert re.search(r"results hold .* MiB of 1\.0 GiB", typed(site, "joe", "quota").stdout)

    large = left(site, "results", GIB)
    again = JobSubmission(entry=CommandEntry(["true"]))
    with site.client("joe") as joe, pytest.raises(TooLarge) as refused:
        joe.submit(again)
    assert refused.value.code == "results-full"
    command = f"benchpool discard {large[:8]} --results"
    assert f"job {large[:8]} (large) holds most" in refused.value.message
    assert f"`{command}` deletes them for good" in refused.value.message
    with site.client("susan") as susan:
        susan.submit(again)

    # The command as printed; the other job's files stay.
    done = typed(site, "joe", *command.split()[1:])
    assert done.returncode == 0, done.stderr
    with site.client("joe") as joe:
        joe.submit(again)
    until(counted, lambda: (before, held(site)), seconds=150)
    gone = typed(site, "joe", "discard", small, failed, "--results", "--checkpoints")
    assert gone.returncode == 0, gone.stderr
    both = dict.fromkeys(both, 0)
    until(counted, lambda: (before, held(site)), seconds=150)
