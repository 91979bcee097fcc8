"""Filters of the queue and the page *Jobs* by wait reason."""

from __future__ import annotations

import httpx
import pytest

from benchpool_scheduler.contract import State
from benchpool_support.stage import StagedPool, job, reason

pytestmark = pytest.mark.asyncio(loop_scope="module")
SUSAN = {"Cookie": "reader=susan"}


async def test_queue_counts_wait_reasons_and_filters_by_reason(
    site: str, staged: StagedPool
) -> None:
    staged.add(
        job("one", reason=reason("Waits.")),
        job("two", reason=reason("Waits.")),
        job("capped", reason=reason("Waits.", code="project-limit")),
        job("broke", State.FAILED, reason=reason("Failed.", code="exit-code")),
    )
    async with httpx.AsyncClient(base_url=site, headers=SUSAN, trust_env=False) as client:
        whole = (await client.get("")).text
        narrowed = (await client.get("?reason=project-limit")).text
        listed = (await client.get("jobs")).text
        failed = (await client.get("jobs?reason=exit-code")).text
        none = (await client.get("jobs?reason=fragmented")).text
        wrong = await client.get("jobs?reason=%3Cb%3E")
    assert '?reason=pool-full#queue">pool full <span class="num">2</span>' in whole
    assert '?reason=project-limit#queue">project limit <span class="num">1</span>' in whole
    assert (">capped<" in narrowed, ">one<" in narrowed) == (True, False)
    assert 'aria-current="true">project limit <span class="num">1</span>' in narrowed
    assert "?reason=pool-full#queue" in narrowed
    for code in ("exit-code", "pool-full", "project-limit"):
        assert f'<option value="{code}">' in listed
    assert (">broke<" in failed, ">capped<" in failed) == (True, False)
    assert "benchpool jobs --all --reason exit-code" in failed
    assert "No job that you may see matches." in none
    assert wrong.status_code == 422
