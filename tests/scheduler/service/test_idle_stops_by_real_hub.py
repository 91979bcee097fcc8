"""A real Hub stops idle servers, with the scopes that benchpool's roles grant."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from benchpool_scheduler.contract import AuditQuery
from benchpool_scheduler.contract.idle_benches import BenchCommand
from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.hub import HubDirectory
from benchpool_support.idle_site import IdleSite, running
from benchpool_support.pools import ADMIN, HUB
from benchpool_support.real_hub import TOKEN, RealHub, real_hub

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealHub]:
    with real_hub(tmp_path_factory.mktemp("hub")) as running_hub:
        yield running_hub


@asynccontextmanager
async def directory(hub: RealHub, service: str) -> AsyncIterator[HubDirectory]:
    """Yield the Hub as the scheduler sees it with the token of a service."""
    opened = HubDirectory(hub.api, f"{TOKEN}{service}")
    try:
        yield opened
    finally:
        await opened.close()


async def becomes_due(site: IdleSite) -> None:
    """Let the bench rest until the note about its stop lies in its folder."""
    while site.now().command is not BenchCommand.NOTE:
        await site.rest(0.5)
    site.report(noted=True)


async def test_idle_server_is_stopped_by_hub(tmp_path: Path, hub: RealHub) -> None:
    hub.start_server("susan")
    hub.start_server("susan", "other")
    async with directory(hub, "benchpool") as known, running(tmp_path, directory=known) as site:
        assert {(it.user, it.name) for it in known.servers() or ()} == {
            ("susan", ""),
            ("susan", "other"),
        }
        await becomes_due(site)
        assert "" in hub.servers("susan")
        await site.pool.idle.look()
        hub.wait_stopped("susan")
        assert site.now().stopping
        assert "other" in hub.servers("susan")
        await site.pool.benches.release(HUB, site.id)  # as its spawner does at the stop
        await site.pool.idle.look()
        page = await site.pool.audit.read(ADMIN, AuditQuery())
        records = [it.action for it in reversed(page.records) if it.action.startswith("bench-")]
        assert records == ["bench-stop", "bench-stopped"]


async def test_stop_without_scope_is_refused_and_reported(tmp_path: Path, hub: RealHub) -> None:
    hub.start_server("susan")
    async with directory(hub, "reader") as known, running(tmp_path, directory=known) as site:
        await becomes_due(site)
        await site.pool.idle.look()
        assert site.pool.observed.now.problems["idle-benches"] == (
            "An idle bench of susan is not stopped: the Hub refuses to stop it (HTTP 403). Give "
            "the service benchpool the scope delete:servers."
        )
        assert hub.servers("susan")[""]["ready"]


async def test_stop_of_missing_server_succeeds(hub: RealHub) -> None:
    hub.start_server("joe", "paper")
    async with directory(hub, "benchpool") as known:
        await known.stop_server("joe", "paper")
        hub.wait_stopped("joe", "paper")
        await known.stop_server("joe", "paper")
        await known.stop_server("joe", "")
        await known.stop_server("nobody", "")
    async with directory(hub, "unknown") as known:
        with pytest.raises(Unavailable, match="HTTP 403"):
            await known.stop_server("joe", "")
