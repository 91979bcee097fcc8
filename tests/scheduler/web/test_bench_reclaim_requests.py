"""An administrator asks for a bench to be released; its owner sees the request and the reason."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from benchpool_scheduler.contract import LeaseRequest
from benchpool_scheduler.contract.audit import AuditQuery
from benchpool_scheduler.service import Pool
from benchpool_support.pools import ADMIN, HUB, JOE, SUSAN, make_pool, opened
from benchpool_support.scripted import ScriptedRuntime, devices
from benchpool_support.stage import application, served

pytestmark = pytest.mark.asyncio

PEOPLE = {"ada": ADMIN, "susan": SUSAN, "joe": JOE}


@pytest_asyncio.fixture
async def pool(tmp_path: Path) -> AsyncIterator[Pool]:
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        yield pool


@pytest_asyncio.fixture
async def http(pool: Pool) -> AsyncIterator[httpx.AsyncClient]:
    with served(lambda: application(pool, PEOPLE)) as url:
        async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
            yield client


def as_(reader: str) -> dict[str, str]:
    return {"Cookie": f"reader={reader}"}


async def asks(http: httpx.AsyncClient, who: str, lease: str, reason: str) -> httpx.Response:
    form = {"_xsrf": f"token-of-{who}", "reason": reason}
    return await http.post(f"benches/{lease}/ask-back", headers=as_(who), data=form)


async def test_bench_owner_sees_reclaim_request_with_reason(
    pool: Pool, http: httpx.AsyncClient, tmp_path: Path
) -> None:
    asked = LeaseRequest(user="joe", server="paper", spawn="s", gpus=1)
    lease = await pool.benches.reserve(HUB, asked)
    answer = await asks(http, "ada", lease.id, "  two people   wait ")
    assert answer.status_code == 303
    page = (await http.get("", headers=as_("joe"))).text
    assert "<bdi>ada</bdi> requests its release" in page
    assert "<bdi>two people wait</bdi>" in page
    (held,) = pool.views.quota(JOE).build.held
    assert held.reclaim_request is not None
    assert (held.reclaim_request.by, held.reclaim_request.reason) == ("ada", "two people wait")
    assert "two people wait" not in (await http.get("", headers=as_("susan"))).text
    (record,) = (await pool.audit.read(ADMIN, AuditQuery(action="ask_back"))).records
    assert (record.actor, record.target) == ("ada", lease.id)
    await pool.benches.release(HUB, lease.id)
    again = await pool.benches.reserve(HUB, asked)
    assert again.reclaim_request is None
    assert pool.benches.leases(JOE)[0].reclaim_request is None


async def test_reclaim_request_survives_restart(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        asked = LeaseRequest(user="joe", server="", spawn="s", gpus=1)
        lease = await pool.benches.reserve(HUB, asked)
        with served(lambda: application(pool, PEOPLE)) as url:
            async with httpx.AsyncClient(base_url=url, trust_env=False) as http:
                await asks(http, "ada", lease.id, "maintenance")
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        (held,) = pool.views.quota(JOE).build.held
        assert held.reclaim_request is not None
        assert held.reclaim_request.reason == "maintenance"


async def test_reclaim_request_requires_administrator_and_reason(
    pool: Pool, http: httpx.AsyncClient
) -> None:
    asked = LeaseRequest(user="joe", server="", spawn="s", gpus=1)
    lease = await pool.benches.reserve(HUB, asked)
    assert (await asks(http, "susan", lease.id, "mine")).status_code == 403
    assert (await asks(http, "ada", lease.id, " ")).status_code in (400, 422)
    assert (await asks(http, "ada", "z" * 26, "gone")).status_code == 404
    (held,) = pool.views.quota(JOE).build.held
    assert held.reclaim_request is None
