"""A reflector with a real API server, through outages, old versions and half-open connections."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from benchpool_cluster.access import Access
from benchpool_scheduler.kube import (
    Appeared,
    Change,
    Changed,
    Connection,
    KubeGone,
    Listed,
    Reflector,
    Vanished,
    connect,
)
from benchpool_scheduler.kube import reflector as reflectors
from benchpool_scheduler.kube.failures import KubeStatus
from benchpool_scheduler.kube.kinds import CONFIG_MAPS
from benchpool_support.waiting import stays

pytestmark = pytest.mark.kubernetes
LABELS = {"for": "tests"}
MINE = "for=tests"


def a_map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": LABELS}, "data": data}


def data_of(it: dict[str, Any]) -> dict[str, str] | None:
    """Return the data of a config map; maps without data are skipped."""
    return it.get("data") or None


def reflect(connection: Connection, namespace: str) -> Reflector[dict[str, str]]:
    return Reflector(connection, CONFIG_MAPS, namespace=namespace, labels=MINE, keep=data_of)


@contextlib.asynccontextmanager
async def following(
    reflector: Reflector[dict[str, str]],
) -> AsyncIterator[tuple[list[Change[dict[str, str]]], Callable[[Callable[[], bool]], Any]]]:
    """Read a reflector in the background; yield its changes and a function that waits for them."""
    seen: list[Change[dict[str, str]]] = []
    news = asyncio.Condition()

    async def follow() -> None:
        async for change in reflector.changes():
            async with news:
                seen.append(change)
                news.notify_all()

    async def until(holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(120), news:
            await news.wait_for(holds)

    task = asyncio.create_task(follow())
    try:
        yield seen, until
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_changes_are_typed_and_skipped_objects_vanish(
    connection: Connection, namespace: str
) -> None:
    await connection.create(CONFIG_MAPS, a_map("before", a="1"), namespace=namespace)
    await connection.create(CONFIG_MAPS, a_map("bare"), namespace=namespace)
    reflector = reflect(connection, namespace)
    async with following(reflector) as (seen, until):
        await until(lambda: Listed() in seen)
        await connection.create(CONFIG_MAPS, a_map("after", b="2"), namespace=namespace)
        await connection.patch(CONFIG_MAPS, "after", {"data": {"b": "3"}}, namespace=namespace)
        await connection.delete(CONFIG_MAPS, "before", namespace=namespace)
        await connection.patch(CONFIG_MAPS, "bare", {"data": {"c": "4"}}, namespace=namespace)
        await connection.patch(CONFIG_MAPS, "bare", {"data": None}, namespace=namespace)
        bare = (namespace, "bare")
        await until(lambda: Vanished(bare, {"c": "4"}) in seen)
        assert seen == [
            Appeared((namespace, "before"), {"a": "1"}),
            Listed(),
            Appeared((namespace, "after"), {"b": "2"}),
            Changed((namespace, "after"), {"b": "3"}, {"b": "2"}),
            Vanished((namespace, "before"), {"a": "1"}),
            Appeared(bare, {"c": "4"}),
            Vanished(bare, {"c": "4"}),
        ]
        assert reflector.items == {(namespace, "after"): {"b": "3"}}


async def test_recreated_object_is_another_object(connection: Connection, namespace: str) -> None:
    await connection.create(CONFIG_MAPS, a_map("one", a="1"), namespace=namespace)
    reflector = reflect(connection, namespace)
    async for change in reflector.changes():
        if isinstance(change, Listed):
            break
    await connection.delete(CONFIG_MAPS, "one", namespace=namespace)
    await connection.create(CONFIG_MAPS, a_map("one", a="1"), namespace=namespace)
    reflector.list_again()  # as after an outage in which versions grew too old
    seen = []
    async for change in reflector.changes():
        seen.append(change)
        if isinstance(change, Listed):
            break
    key = (namespace, "one")
    assert seen == [Vanished(key, {"a": "1"}), Appeared(key, {"a": "1"}), Listed()]


async def test_expired_version_relists_without_false_changes(
    connection: Connection, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("kept", "gone", "changed"):
        await connection.create(CONFIG_MAPS, a_map(name, a="1"), namespace=namespace)
    reflector = reflect(connection, namespace)
    watches = 0
    stream = connection.stream

    @contextlib.asynccontextmanager
    async def too_old(*words: Any, **more: Any) -> AsyncIterator[AsyncIterator[bytes]]:
        nonlocal watches
        watches += 1
        if watches == 1:
            await connection.delete(CONFIG_MAPS, "gone", namespace=namespace)
            await connection.patch(
                CONFIG_MAPS, "changed", {"data": {"a": "2"}}, namespace=namespace
            )
            raise KubeGone(KubeStatus(410, "Expired", "too old resource version"))
        async with stream(*words, **more) as chunks:
            yield chunks

    monkeypatch.setattr(connection, "stream", too_old)
    async with following(reflector) as (seen, until):
        await until(lambda: seen.count(Listed()) == 2)
        second = seen[seen.index(Listed()) + 1 :]
        assert second == [
            Changed((namespace, "changed"), {"a": "2"}, {"a": "1"}),
            Vanished((namespace, "gone"), {"a": "1"}),
            Listed(),
        ]


class Wire:
    """Connection to the API server that can be cut, or drop all data silently."""

    def __init__(self, access: Access) -> None:
        server = urlsplit(access.server)
        self._target = (server.hostname, server.port)
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.swallows = False
        self.connections = 0

    async def open(self, port: int = 0) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        return int(self._server.sockets[0].getsockname()[1])

    def takes_no_more(self) -> None:
        """Accept no new connection; existing connections stay."""
        if self._server is not None:
            self._server.close()

    async def cut(self) -> None:
        """Refuse every connection from now on."""
        if self._server is not None:
            self._server.close()
        for writer in self._writers:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        there, back = await asyncio.open_connection(*self._target)
        self._writers |= {writer, back}
        await asyncio.gather(self._pass(reader, back), self._pass(there, writer))

    async def _pass(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await source.read(65536):
                if not self.swallows:
                    target.write(data)
                    await target.drain()
        target.close()


def kubeconfig_through(access: Access, port: int, folder: Path) -> Path:
    text = yaml.safe_load(access.kubeconfig.read_text())
    cluster = text["clusters"][0]["cluster"]
    host = urlsplit(cluster["server"]).hostname
    cluster["server"] = f"https://127.0.0.1:{port}"
    cluster["tls-server-name"] = host
    file = folder / "through.kubeconfig"
    file.write_text(yaml.safe_dump(text))
    return file


async def test_outage_delays_changes_but_loses_none(
    access: Access, connection: Connection, namespace: str, tmp_path: Path
) -> None:
    wire = Wire(access)
    port = await wire.open()
    await connection.create(CONFIG_MAPS, a_map("gone", a="1"), namespace=namespace)
    async with connect(kubeconfig_through(access, port, tmp_path)) as through:
        reflector = reflect(through, namespace)
        async with following(reflector) as (seen, until):
            await until(lambda: Listed() in seen)
            await wire.cut()
            await connection.delete(CONFIG_MAPS, "gone", namespace=namespace)
            await connection.create(CONFIG_MAPS, a_map("new", b="2"), namespace=namespace)
            # The reflector is refused several times.
            await asyncio.to_thread(stays, lambda: (namespace, "gone") in reflector.items, 1)
            await wire.open(port)
            await until(lambda: Appeared((namespace, "new"), {"b": "2"}) in seen)
            assert Vanished((namespace, "gone"), {"a": "1"}) in seen
    await wire.cut()


async def test_silent_watch_is_reopened(
    access: Access,
    connection: Connection,
    namespace: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reflectors, "WATCH_S", 1)
    monkeypatch.setattr(reflectors, "SLACK_S", 1.0)
    monkeypatch.setattr(random, "randrange", lambda _: 0)
    wire = Wire(access)
    port = await wire.open()
    async with connect(kubeconfig_through(access, port, tmp_path)) as through:
        reflector = reflect(through, namespace)
        async with following(reflector) as (seen, until):
            await until(lambda: Listed() in seen)
            wire.swallows = True  # no word, and no end: half open
            await connection.create(CONFIG_MAPS, a_map("late", a="1"), namespace=namespace)
            await asyncio.sleep(0.5)
            # New connections work; the silent connections stay silent.
            fresh = Wire(access)
            wire.takes_no_more()
            await fresh.open(port)
            await until(lambda: Appeared((namespace, "late"), {"a": "1"}) in seen)
            await fresh.cut()
    await wire.cut()
