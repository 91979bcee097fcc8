"""A Hub of JupyterHub 5 waits for its service until that answers or has ended."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from benchpool_spawner.patient_hub import until_answered


@pytest.mark.parametrize(("lives", "answers"), [(40, True), (39, False)])
async def test_it_is_waited_for_as_long_as_its_process_lives(lives: int, answers: bool) -> None:
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
