"""Jobs of deleted or recreated Hub users are reported to administrators."""

from __future__ import annotations

from pathlib import Path

from benchpool_scheduler.contract import State
from benchpool_scheduler.hub import HubUser, StaticDirectory
from benchpool_scheduler.service import Pool
from benchpool_support.pools import ADMIN, SUSAN, make_pool, opened, reached, sleeper

ADA, SUE = HubUser("ada", admin=True), HubUser("susan")


def problems(pool: Pool) -> str:
    return " ".join(pool.views.status(ADMIN).health.problems)


async def test_jobs_of_deleted_user_are_reported_until_cancelled(tmp_path: Path) -> None:
    hub = StaticDirectory((ADA, SUE), ())
    async with opened(make_pool(tmp_path, directory=hub)) as pool:
        await pool.housekeeping.ask_hub()
        job = await pool.jobs.submit(SUSAN, sleeper())
        await reached(pool, job.id, State.RUNNING)
        assert problems(pool) == ""
        hub.known_users = (ADA,)
        await pool.housekeeping.ask_hub()
        assert "The Hub no longer knows susan, and 1 job of this user has not" in problems(pool)
        (row,) = [it for it in pool.people.all(ADMIN) if it.name == "susan"]
        assert (row.known, row.jobs) == (False, 1)
        await pool.jobs.act(ADMIN, job.id, "cancel")
        await reached(pool, job.id, State.CANCELLED)
        await pool.housekeeping.ask_hub()
        assert problems(pool) == ""


async def test_reused_user_name_is_reported(tmp_path: Path) -> None:
    hub = StaticDirectory((ADA, SUE), ())
    async with opened(make_pool(tmp_path, directory=hub)) as pool:
        await pool.housekeeping.ask_hub()
        old = await pool.jobs.submit(SUSAN, sleeper())
        for known in ((ADA,), (ADA, SUE)):
            hub.known_users = known
            await pool.housekeeping.ask_hub()
        new = await pool.jobs.submit(SUSAN, sleeper())
        await pool.housekeeping.ask_hub()
        assert "susan was removed from the Hub and is used again. It has 1 job" in problems(pool)
        await pool.jobs.act(ADMIN, old.id, "cancel")
        await reached(pool, old.id, State.CANCELLED)
        await pool.housekeeping.ask_hub()
        assert problems(pool) == ""
        assert new.id
