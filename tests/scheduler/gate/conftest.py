"""A gate, an echo service behind it, and an authorised client."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest_asyncio

from benchpool_scheduler.gate import Openness
from benchpool_support import direct
from benchpool_support.gate_stage import Stage, echo, staged


@pytest_asyncio.fixture
async def stage() -> AsyncIterator[Stage]:
    """The gate alone."""
    async with staged() as running:
        yield running


@pytest_asyncio.fixture
async def chat(stage: Stage) -> AsyncIterator[Stage]:
    """The gate with a service ``chat`` of one replica, which echoes its requests."""
    async with echo() as backend:
        stage.directory.set("chat", Openness.READY, (backend,))
        yield stage


@pytest_asyncio.fixture
async def susan(stage: Stage) -> AsyncIterator[httpx.AsyncClient]:
    """HTTP client of susan's program."""
    async with direct.AsyncClient(
        base_url=stage.url, headers={"Authorization": "token susan"}, timeout=120
    ) as client:
        yield client
