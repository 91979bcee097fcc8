"""A state folder of release 0.1.0 is opened with all of its jobs.

A service of that release wrote ``state_of_0_1_0``. ``pool.sqlite`` is its database, and
``jobs.json`` holds its API responses for each job, by name.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchpool_scheduler.contract import JobSubmission
from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.store.records import JobRecord, StoredContents
from benchpool_scheduler.store.sqlite import SqliteStore
from benchpool_support.pools import ADMIN, make_pool, opened

OLD = Path(__file__).parent / "state_of_0_1_0"
RECORDED: dict[str, dict[str, Any]] = json.loads((OLD / "jobs.json").read_text())
ENDED = ("succeeded", "failed", "cancelled")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    (tmp_path / "scheduler").mkdir()
    shutil.copy(OLD / "pool.sqlite", tmp_path / "scheduler")
    return tmp_path


@pytest.fixture
async def contents(state: Path) -> StoredContents:
    store = SqliteStore(state / "scheduler")
    found = await store.open()
    await store.close()
    return found


def named(contents: StoredContents, name: str) -> JobRecord:
    return next(job for job in contents.jobs if job.name == name)


async def test_all_jobs_are_loaded(contents: StoredContents) -> None:
    assert {job.name: job.id for job in contents.jobs} == {
        name: recorded["job"]["id"] for name, recorded in RECORDED.items()
    }


@pytest.mark.parametrize("name", RECORDED)
async def test_job_request_and_history_are_unchanged(contents: StoredContents, name: str) -> None:
    recorded, job = RECORDED[name]["job"], named(contents, name)
    spec = job.spec
    assert (spec.gpus, spec.workers, spec.least_workers) == (
        *(recorded["gpus"], recorded["workers"], recorded["min_workers"]),
    )
    assert (spec.priority, spec.preemptible) == (recorded["priority"], recorded["preemptible"])
    assert (job.state.value, job.attempt) == (recorded["state"], recorded["attempt"])
    assert len([it for it in contents.attempts if it.job == job.id]) == len(
        RECORDED[name]["attempts"]
    )
    assert [round(it.lost_gpu_s, 1) for it in contents.preemptions if it.job == job.id] == [
        it["lost_gpu_s"] for it in recorded["preemptions"]
    ]


@pytest.mark.parametrize("name", RECORDED)
async def test_job_spec_matches_submission_except_changes(
    state: Path, contents: StoredContents, name: str
) -> None:
    job = named(contents, name)
    with sqlite3.connect(state / "scheduler" / "pool.sqlite") as db:
        (body,) = db.execute("SELECT submission FROM jobs WHERE id = ?", (job.id,)).fetchone()
    asked = msgspec.json.decode(body, type=JobSubmission).spec
    assert job.spec == asked.changed(workers=job.spec.workers, priority=job.spec.priority)
    changed = name.startswith("changed") or name == "elastic"
    assert changed or job.spec == asked


async def test_non_default_spec_fields_are_kept(contents: StoredContents) -> None:
    assert named(contents, "elastic").spec == JobSpec(
        workers=3, min_workers=1, priority=45, preferred_level="node", spread=True,
        cpus=0.5, memory_gib=0.25,
    )  # fmt: skip
    assert named(contents, "rigid").spec == JobSpec(
        gpus=2, preemptible=False, gpu_models=("A100", "H100"), required_level="node"
    )
    assert named(contents, "ended-well").spec == JobSpec(time_limit_s=600)


async def test_service_continues_with_old_state(state: Path) -> None:
    async with opened(make_pool(state)) as pool:
        for name, recorded in RECORDED.items():
            now = msgspec.to_builtins(pool.jobs.detail(ADMIN, recorded["job"]["id"]))
            same = ["id", "gpus", "workers", "min_workers", "priority", "preemptible", "submitted"]
            if recorded["job"]["state"] in ENDED:
                # The response is the same, apart from fields added to the API since.
                assert now["job"] | recorded["job"] == now["job"]
                assert now | recorded | {"job": now["job"]} == now
            assert {key: now["job"][key] for key in same} == {
                key: recorded["job"][key] for key in same
            }, name
