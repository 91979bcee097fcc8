"""``benchpool.yaml`` is reloaded on a signal, and every outcome is reported correctly."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchpool_scheduler.client import AsyncClient
from benchpool_scheduler.configuration import load
from benchpool_scheduler.contract import ConfigurationChange
from benchpool_scheduler.workstation.reloading import Reloading
from benchpool_scheduler.workstation.startup_screen import JsonScreen
from benchpool_support.pools import ADMIN, make_pool, opened
from benchpool_support.scripted import ScriptedRuntime, devices
from benchpool_support.serving import CONFIGURATION, Served, served

MORE = CONFIGURATION.replace("susan: 1", "susan: 2")


class RecordingScreen(JsonScreen):
    """Screen that records its output."""

    def __init__(self) -> None:
        self.events: asyncio.Queue[tuple[str, str, dict[str, Any]]] = asyncio.Queue()

    def event(self, name: str, text: str, **fields: object) -> None:
        self.events.put_nowait((name, text, fields))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("state")) as running:
        yield running


class Room:
    """Configuration file, token file and the reloader under test."""

    def __init__(self, folder: Path, service: Served) -> None:
        self.file, self.token, self.screen = (
            folder / "pool.yaml",
            folder / "token",
            RecordingScreen(),
        )
        self.file.write_text(CONFIGURATION)
        self.token.write_text("root\n")
        self.reloading = Reloading(self.file, service.url, self.token, self.screen)

    async def read_again(self) -> tuple[str, str, dict[str, Any]]:
        self.reloading.ask()
        return await self.screen.events.get()


@pytest.fixture
def room(tmp_path: Path, service: Served) -> Room:
    return Room(tmp_path, service)


async def test_configuration_changes_are_reported(room: Room) -> None:
    room.file.write_text(MORE)
    name, text, fields = await room.read_again()
    assert (name, "susan" in text, bool(fields["changes"])) == ("configuration", True, True)
    room.file.write_text(CONFIGURATION)
    assert (await room.read_again())[0] == "configuration"
    assert (await room.read_again())[:2] == ("configuration", "Configuration: no changes")


async def test_notification_settings_are_reloaded_and_reported(room: Room, service: Served) -> None:
    file = service.pool.observed.settings.state / "notifications.yaml"
    for text, expected in (
        ("kinds: [https]\n", ("notifications", "Notifications: https")),
        ("kinds: [https]\nper_hour: 0\n", ("notifications-refused", "line 2: per_hour")),
        ("", ("notifications", "Notifications: nothing is sent to users")),
    ):
        file.write_text(text)
        assert (await room.read_again())[0] == "configuration"
        name, message, _ = await room.screen.events.get()
        assert name == expected[0]
        assert expected[1] in message


async def test_configuration_error_names_its_line(room: Room) -> None:
    room.file.write_text(CONFIGURATION.replace("susan: 1", "susan: one"))
    name, text, fields = await room.read_again()
    assert name == "configuration-refused"
    assert f"{room.file}, line 3" in text
    assert fields["error"]["message"] == text


@pytest.mark.parametrize("harm", ["is gone", "is a folder", "is no text"])
async def test_unreadable_file_is_named(room: Room, harm: str) -> None:
    room.file.unlink()
    if harm == "is a folder":
        room.file.mkdir()
    if harm == "is no text":
        room.file.write_bytes(b"version: \xff")
    name, text, _ = await room.read_again()
    assert name == "configuration-refused"
    assert f"{room.file} cannot be read" in text
    assert "previous configuration stays in force" in text


async def test_unreadable_token_has_its_own_error(room: Room) -> None:
    room.token.unlink()
    name, text, fields = await room.read_again()
    assert (name, fields["error"]["code"]) == ("configuration-refused", "admin-token")
    assert text.startswith(f"{room.token}, with the administrator's token, cannot be read")


@pytest.mark.expected_errors("reload of the settings failed")
async def test_internal_error_is_reported(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> None:
        raise KeyError("changes")

    monkeypatch.setattr(AsyncClient, "send", broken)
    name, text, fields = await room.read_again()
    assert (name, fields["error"]["code"]) == ("configuration-refused", "server-fault")
    assert "KeyError: 'changes'" in text
    assert "It is unknown" in text


async def test_concurrent_reloads_run_sequentially(room: Room) -> None:
    room.file.unlink()
    os.mkfifo(room.file)  # a reader waits for a writer and gets that writer's text
    room.reloading.ask()
    room.reloading.ask()
    for text in (MORE, CONFIGURATION):
        await asyncio.to_thread(room.file.write_text, text)
        name, message, _ = await room.screen.events.get()
        assert (name, "susan" in message) == ("configuration", True), message


async def test_file_saved_during_reload_is_applied(
    room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = make_pool(
        tmp_path,
        configuration=load(CONFIGURATION),
        runtime=ScriptedRuntime(devices(9)),
        configuration_file=room.file,
    )
    later = [MORE + "# and this\n"]

    async def apply(_: AsyncClient, text: str, *, file: str | None = None) -> ConfigurationChange:
        if later:
            room.file.write_text(later.pop())
        return await pool.configuration.apply(ADMIN, text, file)

    monkeypatch.setattr(AsyncClient, "apply_config", apply)
    async with opened(pool):
        name, text, _ = await room.read_again()
        assert (name, "susan" in text) == ("configuration", True), text
        assert room.file.read_text() == MORE + "# and this\n"
        assert pool.observed.now.configuration.text == MORE + "# and this\n"
