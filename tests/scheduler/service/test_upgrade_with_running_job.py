"""A job started by 0.1.0 runs on under this release and ends with its own exit status.

``state_of_0_1_0`` is a database of that release. Its running job gets a process as in that release:
a supervisor with its records, without an origin file beside them.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

from benchpool_scheduler.contract import State
from benchpool_scheduler.runtime import WorkerId
from benchpool_scheduler.runtime.local import LocalRuntime, simulated
from benchpool_support.pools import ADMIN, make_pool, opened, reached
from benchpool_support.workers import Listener, python_launch, until_logged

OLD = Path(__file__).parents[1] / "store" / "state_of_0_1_0"


def workers_on_record(database: Path) -> list[WorkerId]:
    """Return the workers of the running jobs from the facts as written by 0.1.0."""
    with sqlite3.connect(database) as db:
        rows = db.execute("SELECT facts FROM attempts").fetchall()
    attempts = [json.loads(row[0]) for row in rows]
    return [
        WorkerId(it["job"], it["attempt"], worker["index"])
        for it in attempts
        for worker in it["workers"]
        if worker.get("ended") is None and it.get("ended") is None
    ]


async def test_running_job_survives_upgrade_from_0_1_0(tmp_path: Path) -> None:
    (tmp_path / "scheduler").mkdir()
    shutil.copy(OLD / "pool.sqlite", tmp_path / "scheduler")
    flag = tmp_path / "go"
    program = (
        "import os, time\nprint('up')\n"
        f"while not os.path.exists({str(flag)!r}): time.sleep(0.02)\n"
        "raise SystemExit(0)"
    )
    workers = workers_on_record(tmp_path / "scheduler" / "pool.sqlite")
    assert workers, "the folder of 0.1.0 has a job that runs"
    earlier = LocalRuntime(tmp_path, simulated(9))
    await earlier.open([])
    listener = Listener(earlier)
    for worker in workers:
        await earlier.start(python_launch(program, worker=worker))
        await until_logged(earlier, worker, b"up")
    await listener.close()
    await earlier.close()
    assert not list((tmp_path / "jobs").rglob("origin.json"))

    async with opened(make_pool(tmp_path)) as pool:
        jobs = {worker.job for worker in workers}
        for job in jobs:
            before = pool.jobs.detail(ADMIN, job).job
            now = await reached(pool, job, State.RUNNING, State.PAUSING)
            assert now.attempt == before.attempt
        assert pool.observed.now.safe_mode.quiet
        flag.touch()
        for job in jobs:
            ended = await reached(pool, job, State.SUCCEEDED)
            assert ended.exit_code == 0
    assert list((tmp_path / "backups").glob("*before-version*/pool.sqlite"))
