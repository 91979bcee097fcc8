"""The scheduler's side for agents: over HTTP, each with the token of its own worker."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application

from benchpool_scheduler.api.workers import Agents
from benchpool_scheduler.runtime import Notice, WorkerEvent, WorkerId, WorkerProgress
from benchpool_scheduler.runtime.kubernetes import AgentApi, AgentTokens
from benchpool_scheduler.runtime.kubernetes.agent.link import Link, LinkAway
from benchpool_scheduler.runtime.kubernetes.agent.link import LinkRefused as LinkRefused
from benchpool_scheduler.runtime.kubernetes.attempt_registry import AttemptRegistry, WorkerState
from benchpool_scheduler.worker import log_reader
from benchpool_scheduler.worker.folders import Folders
from benchpool_support.real_pods import Bundle

WORKER = WorkerId("j" * 26, 1, 0)
TOKENS = AgentTokens(b"s" * 32)


class Desked:
    """A desk that is served, and what it told."""

    def __init__(self, state: Path) -> None:
        self.told: list[WorkerEvent] = []
        self.folders = Folders(state)
        self.registry = AttemptRegistry()
        for attempt in (1, 2):
            self.worker_of(attempt)
        self.agent_api = AgentApi(
            self.folders, self.told.append, ended=self.registry.ended, log_bytes=1 << 20
        )
        self.bundle = Bundle(train_py="print(1)")
        self.server = HTTPServer(
            Application(Agents(self.agent_api, TOKENS, self.bundle, 1 << 20).rules("/")),
            max_body_size=64 * 1024,  # folders on their way have a bound of their own
        )
        (listening,) = bind_sockets(0, "127.0.0.1", socket.AF_INET)
        self.server.add_sockets([listening])
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}/workers"

    def worker_of(self, attempt: int) -> WorkerState:
        """What is known of the first worker of an attempt."""
        workers = self.registry.attempt(WORKER.job, attempt, 0.0).workers
        worker = WorkerId(WORKER.job, attempt, 0)
        return workers.setdefault(0, WorkerState(worker, "node-1", ()))

    def client(self, worker: WorkerId = WORKER, token: str | None = None) -> httpx.AsyncClient:
        """A client of a worker's agent."""
        path = f"{self.url}/{worker.job}/{worker.attempt}/{worker.worker}/"
        bearer = f"Bearer {TOKENS.of(worker) if token is None else token}"
        return httpx.AsyncClient(
            base_url=path, headers={"Authorization": bearer}, trust_env=False, timeout=20
        )


@pytest.fixture
async def desked(tmp_path: Path) -> AsyncIterator[Desked]:
    """A desk that is served."""
    made = Desked(tmp_path)
    yield made
    made.server.stop()
    await made.server.close_all_connections()


async def test_nobody_is_answered_without_the_token_of_that_very_worker(desked: Desked) -> None:
    other = TOKENS.of(WorkerId(WORKER.job, 2, 0))
    for token in ("none", "0" * 64, other):
        async with desked.client(token=token) as client:
            assert set(await statuses_of_all(client)) == {401}
    assert desked.told == []
    assert list(desked.folders.workers()) == []


async def statuses_of_all(client: httpx.AsyncClient) -> list[int]:
    """Ask for everything that agents may ask for; return the statuses."""
    asked = [
        await client.request(method, path, content=b"x" if method != "GET" else b"")
        for method, path in (
            ("GET", "notice?wait_s=0"),
            ("POST", "log?offset=0"),
            ("POST", "progress"),
            ("GET", f"objects/{'0' * 64}"),
            ("GET", "checkpoint/0"),
            ("PUT", "checkpoint"),
            ("PUT", "results"),
        )
    ]
    return [answer.status_code for answer in asked]


async def test_who_has_the_token_of_a_worker_that_ended_changes_nothing_with_it(
    desked: Desked,
) -> None:
    async with desked.client(WorkerId(WORKER.job, 2, 0)) as client:
        assert (await client.put("checkpoint", content=b"newer")).status_code == 200
    desked.worker_of(1).over = True
    async with desked.client() as client:
        assert set(await statuses_of_all(client)) == {403}
        refused = await client.put("checkpoint", content=b"older")
        assert "Worker 0 of attempt 1 of job jjjjjjjj has ended" in refused.text
    unknown = WorkerId("u" * 26, 1, 0)
    async with desked.client(unknown) as client:  # of a job that was deleted, or never was
        assert set(await statuses_of_all(client)) == {403}
    kept = desked.agent_api.carried(WORKER.job, "checkpoint", 0)
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]
    assert kept.read_bytes() == b"newer"
    assert desked.told == []
    assert list(desked.folders.workers()) == []


async def test_a_worker_that_ends_while_its_archive_comes_leaves_none(desked: Desked) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"first half "
        async with asyncio.timeout(20):
            folder = desked.agent_api.carried(WORKER.job, "results", 0).parent
            while not folder.exists() or not list(folder.iterdir()):
                await asyncio.sleep(0.01)
        desked.worker_of(1).over = True
        yield b"second half"

    async with desked.client() as client:
        headers = {"Content-Length": "22"}
        assert (await client.put("results", content=body(), headers=headers)).status_code == 403
    assert not list(desked.agent_api.carried(WORKER.job, "results", 0).parent.iterdir())


async def test_a_notice_arrives_while_the_agent_asks(desked: Desked) -> None:
    async with desked.client() as client:
        asking = asyncio.create_task(client.get("notice", params={"wait_s": 20}))
        await asyncio.sleep(0.1)
        assert desked.agent_api.listens(WORKER)
        desked.agent_api.notify(WORKER, Notice("pause", 30.0, "joe", "room"))
        began = time.monotonic()
        answer = await asking
        assert time.monotonic() - began < 1.0
        assert answer.json() | {"grace_s": 0} == {
            "kind": "pause",
            "grace_s": 0,
            "for": "joe",
            "text": "room",
        }
        again = await client.get("notice", params={"wait_s": 0, "known": "pause"})
        assert again.status_code == 204
        desked.agent_api.notify(WORKER, Notice("cancel", 5.0, "susan", "enough"))
        stronger = await client.get("notice", params={"wait_s": 0, "known": "pause"})
        assert stronger.json()["kind"] == "cancel"


async def test_a_log_goes_on_where_it_is_whoever_sends_what_again(desked: Desked) -> None:
    folder = desked.folders.worker(WORKER)
    async with desked.client() as client:
        for offset, data, after in ((0, b"hello ", 6), (0, b"hello ", 6), (3, b"lo world", 11)):
            answer = await client.post("log", params={"offset": offset}, content=data)
            assert answer.json() == {"next": after}
        assert log_reader.read(folder, 0, 100) == (0, b"hello world")
        gap = await client.post("log", params={"offset": 500}, content=b"later")
        assert gap.json() == {"next": 505}
        assert log_reader.read(folder, 11, 100) == (500, b"later")
        much = bytes(range(256)) * 2048
        for number in range(6):
            await client.post("log", params={"offset": 505 + number * len(much)}, content=much)
    total = sum(path.stat().st_size for path in folder.iterdir())
    assert total < 1.5 * (1 << 20)
    end = 505 + 6 * len(much)
    assert log_reader.read(folder, end - 2, 100) == (end - 2, much[-2:])


async def test_progress_is_told_and_nonsense_refused(desked: Desked) -> None:
    async with desked.client() as client:
        good = {"fraction": 0.5, "text": "half", "metrics": {"loss": 1.5}, "checkpoint_at": 7.0}
        assert (await client.post("progress", json=good)).status_code == 200
        for bad in ({"fraction": 2}, {"text": "x" * 501}, {"other": 1}, [1]):
            assert (await client.post("progress", json=bad)).status_code == 422
    (told,) = desked.told
    assert isinstance(told, WorkerProgress)
    assert (told.fraction, told.text, told.checkpoint_at) == (0.5, "half", 7.0)


async def test_a_job_reads_its_own_contents_only(desked: Desked) -> None:
    async with desked.client() as client:
        answer = await client.get(f"objects/{desked.bundle.files[0].sha256}")
        assert answer.content == b"print(1)"
        assert (await client.get(f"objects/{'0' * 64}")).status_code == 404
        assert (await client.get("objects/../../secret")).status_code == 404


async def test_what_was_saved_is_fetched_by_the_next_attempt(desked: Desked) -> None:
    async with desked.client() as client:
        assert (await client.get("checkpoint/0")).status_code == 404
        assert (await client.put("checkpoint", content=b"saved")).status_code == 200
        assert (await client.put("results", content=b"r" * (1 << 20))).status_code == 200
        large = b"x" * ((1 << 20) + 1)
        # A body that is refused is not read: the caller may see the connection close first.
        with suppress(httpx.TransportError):
            assert (await client.put("checkpoint", content=large)).status_code == 413
    async with desked.client(WorkerId(WORKER.job, 2, 0)) as client:
        assert (await client.get("checkpoint/0")).content == b"saved"
    kept = list(desked.agent_api.carried(WORKER.job, "checkpoint", 0).parent.iterdir())
    assert sorted(path.name for path in kept) == ["checkpoint-0.tar", "results-0.tar"]


async def test_an_agent_waits_while_the_scheduler_is_away(desked: Desked) -> None:
    path = f"{WORKER.job}/{WORKER.attempt}/{WORKER.worker}"
    link = Link(desked.url, path, TOKENS.of(WORKER), threading.Event())
    with _silent() as nowhere:
        lost = Link(nowhere, path, TOKENS.of(WORKER), threading.Event())
        with pytest.raises(LinkAway):
            await asyncio.to_thread(lost.get, "notice?wait_s=0", patience_s=0.5)
    assert await asyncio.to_thread(link.get, "notice?wait_s=0") == b""
    wrong = Link(desked.url, path, "0" * 64, threading.Event())
    with pytest.raises(LinkRefused, match="token of this very worker"):
        await asyncio.to_thread(wrong.get, "notice?wait_s=0", patience_s=60.0)


@contextmanager
def _silent() -> Iterator[str]:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/workers"
