"""A Hub of JupyterHub 5 waits for its service until the service answers or has ended."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from benchpool_spawner.patient_hub import until_answered


@pytest.mark.parametrize(("lives", "answers"), [(40, True), (39, False)])
async def test_service_is_awaited_until_process_ends(lives: int, answers: bool) -> None:
    looks, tries = 0, 0

    async def poll() -> int | None:
        nonlocal looks
        looks += 1
        return None if looks <= lives else 1

    async def answered() -> None:
        nonlocal tries
        tries += 1
        if tries < 40:
            raise TimeoutError

    service = SimpleNamespace(spawner=SimpleNamespace(poll=poll))
    assert await until_answered(answered, service) is answers
