"""Concurrent page renders are limited per user and do not delay other users."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import httpx
import pytest

from benchpool_scheduler.web.pages import PageHandler
from benchpool_scheduler.web.render_limiter import AT_ONCE, MOST

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_page_renders_are_limited_per_user(
    site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    resume, real, under_way, most = threading.Event(), PageHandler.show, 0, 0

    async def slow(page: PageHandler, *args: Any, **more: Any) -> None:
        nonlocal under_way, most
        if page.caller is not None and page.caller.name == "susan":
            under_way += 1
            most = max(most, under_way)
            await asyncio.to_thread(resume.wait, 60)
            under_way -= 1
        await real(page, *args, **more)

    monkeypatch.setattr(PageHandler, "show", slow)
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(
        base_url=site, trust_env=False, timeout=60, limits=limits
    ) as client:

        async def ask(reader: str) -> httpx.Response:
            return await client.get("estimates", headers={"Cookie": f"reader={reader}"})

        asked = [asyncio.create_task(ask("susan")) for _ in range(MOST + 5)]
        while sum(task.done() for task in asked) < 5:
            await asyncio.wait([it for it in asked if not it.done()], return_when="FIRST_COMPLETED")
        refused = [task.result() for task in asked if task.done()]
        assert {answer.status_code for answer in refused} == {429}
        assert f"still pending (limit: {MOST}). Wait for them." in refused[0].text
        assert (await ask("joe")).status_code == 200
        assert sum(task.done() for task in asked) == 5
        resume.set()
        answers = await asyncio.gather(*asked)
        assert sorted(answer.status_code for answer in answers) == [200] * MOST + [429] * 5
        assert most == AT_ONCE
        assert (await ask("susan")).status_code == 200
