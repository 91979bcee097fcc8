"""Pages and reports explain an unreadable telemetry database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from benchpool_scheduler.contract import State
from benchpool_scheduler.contract.use import UseQuery
from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.service import Pool
from benchpool_support.locked_files import locked
from benchpool_support.pools import ADMIN, SUSAN, make_pool, opened, reached, sleeper, story
from benchpool_support.scripted import ScriptedRuntime, devices
from benchpool_support.stage import application, served

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

TEXT = """
version: 1
build: {users: {}, reserve: 0}
projects: [{name: susan, quota: 4, members: [susan]}]
"""
UNREAD = "GPU measurements cannot be read now. Try again in a minute"


@pytest_asyncio.fixture(loop_scope="module")
async def pool(tmp_path: Path) -> AsyncIterator[Pool]:
    made = make_pool(tmp_path, configuration=story(TEXT), runtime=ScriptedRuntime(devices(4)))
    async with opened(made) as pool:
        yield pool


async def test_locked_telemetry_keeps_pages_and_rejects_reports(pool: Pool, tmp_path: Path) -> None:
    sent = await pool.jobs.submit(SUSAN, sleeper(project="susan", name="mine"))
    await reached(pool, sent.id, State.RUNNING)
    database = pool.metering.database
    with served(lambda: application(pool, {"susan": SUSAN, "ada": ADMIN})) as url:
        async with httpx.AsyncClient(base_url=url, trust_env=False) as http:
            susan, ada = {"Cookie": "reader=susan"}, {"Cookie": "reader=ada"}
            assert UNREAD not in (await http.get("mine", headers=susan)).text
            database.close()
            with locked(tmp_path / "scheduler" / "telemetry.sqlite"):
                mine = await http.get("mine", headers=susan)
                assert mine.status_code == 200
                assert UNREAD in mine.text
                assert f"jobs/{sent.id}" in mine.text
                with pytest.raises(Unavailable, match=UNREAD) as refused:
                    await pool.use.report(SUSAN, UseQuery())
                assert refused.value.code == "telemetry-unavailable"
                fleet = await http.get("fleet", headers=ada)
                assert fleet.status_code == 503
                assert UNREAD in fleet.text
            assert (await http.get("fleet", headers=ada)).status_code == 200
            assert UNREAD not in (await http.get("mine", headers=susan)).text
    await pool.use.report(SUSAN, UseQuery())
