"""Tags on the dashboard and on the page of a job."""

from __future__ import annotations

import httpx
import pytest

from benchpool_scheduler.contract import State
from benchpool_support.stage import StagedPool, job

pytestmark = pytest.mark.asyncio(loop_scope="module")
SUSAN = {"Cookie": "reader=susan"}


async def test_job_tags_are_shown_and_filter_queue(site: str, staged: StagedPool) -> None:
    tagged = job("tagged", State.RUNNING, tags=("sweep", "<b>"))
    staged.add(tagged, job("plain", State.RUNNING))
    async with httpx.AsyncClient(base_url=site, headers=SUSAN, trust_env=False) as client:
        whole = (await client.get("")).text
        narrowed = (await client.get("?tag=sweep")).text
        page = (await client.get(f"jobs/{tagged.id}")).text
    assert "?tag=sweep" in whole
    assert "<b>" not in whole
    assert ">plain<" in whole
    assert ">tagged<" in narrowed
    assert ">plain<" not in narrowed
    assert "show all" in narrowed
    assert "sweep, &lt;b&gt;" in page
