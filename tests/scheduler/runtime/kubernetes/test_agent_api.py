"""The scheduler's HTTP API for agents, with one token per worker."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from benchpool_scheduler.runtime import Notice, WorkerId, WorkerMetrics, WorkerProgress
from benchpool_scheduler.runtime.kubernetes.agent.link import Link, LinkAway
from benchpool_scheduler.runtime.kubernetes.agent.link import LinkRefused as LinkRefused
from benchpool_scheduler.worker import log_reader
from benchpool_support.served_agents import TOKENS, WORKER, ServedAgents
from benchpool_support.waiting import until_async


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[ServedAgents]:
    """Yield an agent API that is served over HTTP."""
    made = ServedAgents(tmp_path)
    yield made
    await made.close()


async def test_request_without_worker_token_is_rejected(
    served: ServedAgents,
) -> None:
    other = TOKENS.of(WorkerId(WORKER.job, 2, 0))
    for token in ("none", "0" * 64, other):
        async with served.client(token=token) as client:
            assert set(await statuses_of_all(client)) == {401}
    assert served.events == []
    assert list(served.folders.workers()) == []


async def statuses_of_all(client: httpx.AsyncClient) -> list[int]:
    """Send every request of an agent and return the response statuses."""
    asked = [
        await client.request(method, path, content=b"x" if method != "GET" else b"")
        for method, path in (
            ("GET", "notice?wait_s=0"),
            ("POST", "log?offset=0"),
            ("POST", "progress"),
            ("GET", f"shells/{'0' * 32}/typed?wait_s=0&full=0&offset=0"),
            ("POST", f"shells/{'0' * 32}/printed?offset=0"),
            ("POST", f"shells/{'0' * 32}/ended"),
            ("GET", f"objects/{'0' * 64}"),
            ("GET", "checkpoint/0"),
            ("PUT", "checkpoint"),
            ("PUT", "results"),
        )
    ]
    return [answer.status_code for answer in asked]


async def test_token_of_ended_worker_is_rejected(
    served: ServedAgents,
) -> None:
    async with served.client(WorkerId(WORKER.job, 2, 0)) as client:
        assert (await client.put("checkpoint", content=b"newer")).status_code == 200
    served.worker_of(1).over = True
    async with served.client() as client:
        assert set(await statuses_of_all(client)) == {403}
        refused = await client.put("checkpoint", content=b"older")
        assert "Worker 0 of attempt 1 of job jjjjjjjj has ended" in refused.text
    unknown = WorkerId("u" * 26, 1, 0)
    async with served.client(unknown) as client:  # of a deleted or unknown job
        assert set(await statuses_of_all(client)) == {403}
    kept = served.agent_api.carried(WORKER.job, "checkpoint", 0)
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]
    assert kept.read_bytes() == b"newer"
    assert served.events == []
    assert list(served.folders.workers()) == []


async def test_archive_of_ended_worker_is_discarded(served: ServedAgents) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"first half "
        async with asyncio.timeout(120):
            folder = served.agent_api.carried(WORKER.job, "results", 0).parent
            await until_async(lambda: folder.exists() and list(folder.iterdir()))
        served.worker_of(1).over = True
        yield b"second half"

    async with served.client() as client:
        headers = {"Content-Length": "22"}
        assert (await client.put("results", content=body(), headers=headers)).status_code == 403
    assert not list(served.agent_api.carried(WORKER.job, "results", 0).parent.iterdir())


async def test_notice_reaches_polling_agent(served: ServedAgents) -> None:
    async with served.client() as client:
        asking = asyncio.create_task(client.get("notice", params={"wait_s": 60}))
        await until_async(lambda: served.agent_api.listens(WORKER))
        served.agent_api.notify(WORKER, Notice("pause", 30.0, "joe", "room"))
        answer = await asking
        assert answer.json() | {"grace_s": 0} == {
            "kind": "pause",
            "grace_s": 0,
            "for": "joe",
            "text": "room",
        }
        again = await client.get("notice", params={"wait_s": 0, "known": "pause"})
        assert again.status_code == 204
        served.agent_api.notify(WORKER, Notice("cancel", 5.0, "susan", "enough"))
        stronger = await client.get("notice", params={"wait_s": 0, "known": "pause"})
        assert stronger.json()["kind"] == "cancel"


async def test_resent_log_bytes_are_written_once(served: ServedAgents) -> None:
    folder = served.folders.worker(WORKER)
    async with served.client() as client:
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


async def test_progress_is_reported_and_invalid_progress_rejected(served: ServedAgents) -> None:
    async with served.client() as client:
        good = {"fraction": 0.5, "text": "half", "metrics": {"loss": 1.5}, "checkpoint_at": 7.0}
        good["runs"] = [["mlflow", "https://joe:pw@ml/"], ["x", "javascript:alert(1)"]]
        assert (await client.post("progress", json=good)).status_code == 200
        for bad in ({"fraction": 2}, {"text": "x" * 501}, {"other": 1}, [1], {"runs": [["a"]]}):
            assert (await client.post("progress", json=bad)).status_code == 422
    (progress,) = served.events
    assert isinstance(progress, WorkerProgress)
    assert (progress.fraction, progress.text, progress.checkpoint_at) == (0.5, "half", 7.0)
    assert progress.runs == (("mlflow", "https://ml/"),)


async def test_job_reads_only_its_own_contents(served: ServedAgents) -> None:
    async with served.client() as client:
        answer = await client.get(f"objects/{served.bundle.files[0].sha256}")
        assert answer.content == b"print(1)"
        assert (await client.get(f"objects/{'0' * 64}")).status_code == 404
        assert (await client.get("objects/../../secret")).status_code == 404


async def test_saved_checkpoint_is_fetched_by_next_attempt(served: ServedAgents) -> None:
    async with served.client() as client:
        assert (await client.get("checkpoint/0")).status_code == 404
        assert (await client.put("checkpoint", content=b"saved")).status_code == 200
        assert (await client.put("results", content=b"r" * (1 << 20))).status_code == 200
        large = b"x" * ((1 << 20) + 1)
        # The body of a rejected request is not read, so the client may see a closed connection
        # first.
        with suppress(httpx.TransportError):
            assert (await client.put("checkpoint", content=large)).status_code == 413
    async with served.client(WorkerId(WORKER.job, 2, 0)) as client:
        assert (await client.get("checkpoint/0")).content == b"saved"
    kept = list(served.agent_api.carried(WORKER.job, "checkpoint", 0).parent.iterdir())
    assert sorted(path.name for path in kept) == ["checkpoint-0.tar", "results-0.tar"]


async def test_agent_retries_while_scheduler_is_unreachable(served: ServedAgents) -> None:
    path = f"{WORKER.job}/{WORKER.attempt}/{WORKER.worker}"
    link = Link(served.url, path, TOKENS.of(WORKER), threading.Event())
    with _silent() as nowhere:
        lost = Link(nowhere, path, TOKENS.of(WORKER), threading.Event())
        with pytest.raises(LinkAway):
            await asyncio.to_thread(lost.get, "notice?wait_s=0", patience_s=0.5)
    assert await asyncio.to_thread(link.get, "notice?wait_s=0") == b""
    wrong = Link(served.url, path, "0" * 64, threading.Event())
    with pytest.raises(LinkRefused, match="token of this worker"):
        await asyncio.to_thread(wrong.get, "notice?wait_s=0", patience_s=60.0)


@contextmanager
def _silent() -> Iterator[str]:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/workers"


async def test_metrics_are_reported_and_invalid_metrics_rejected(served: ServedAgents) -> None:
    async with served.client() as client:
        good = {"values": [["loss", 0.5, 7.0, 3], ["loss", None, 8.0, None]]}
        assert (await client.post("metrics", json=good)).status_code == 200
        bad_values = (["x" * 101, 1.0, 7.0, 1], ["a", "1", 7.0, 1], ["a", 1.0, 7.0, -1], ["a"])
        for bad in ({"values": [it]} for it in bad_values):
            assert (await client.post("metrics", json=bad)).status_code == 422
        many = {"values": [["loss", 0.5, 7.0, 3]] * 501}
        assert (await client.post("metrics", json=many)).status_code == 422
    (metrics,) = served.events
    assert isinstance(metrics, WorkerMetrics)
    assert [(it.value, it.step) for it in metrics.values] == [(0.5, 3), (None, None)]


async def test_shell_input_and_output_are_delivered_once(
    served: ServedAgents,
) -> None:
    async with served.client() as client:
        opening = asyncio.create_task(served.agent_api.shell(WORKER, 24, 80, "xterm"))
        notice = (await client.get("notice", params={"wait_s": 20, "shell": ""})).json()
        assert notice | {"shell": ""} == {
            "kind": "shell",
            "shell": "",
            "rows": 24,
            "columns": 80,
            "term": "xterm",
        }
        known = {"wait_s": 0, "shell": notice["shell"]}
        assert (await client.get("notice", params=known)).status_code == 204
        at = f"shells/{notice['shell']}"
        size = {"rows": 24, "columns": 80}
        asked = {"full": 0, "wait_s": 0, **size}
        nothing = {"data": "", "next": 0, **size, "hang_up": False}
        assert (await client.get(f"{at}/typed", params=asked | {"offset": 0})).json() == (nothing)
        shell = await opening
        await shell.write(b"abc")
        for offset, data in ((0, "YWJj"), (0, "YWJj"), (2, "Yw=="), (3, "")):
            typed = (await client.get(f"{at}/typed", params=asked | {"offset": offset})).json()
            assert (typed["data"], typed["next"]) == (data, 3)
        for offset, sent, new in ((0, b"hello ", b"hello "), (0, b"hello world", b"world")):
            printed = await client.post(f"{at}/printed", params={"offset": offset}, content=sent)
            assert printed.json() == {"next": len(sent)}
            assert await shell.read() == new
        gap = await client.post(f"{at}/printed", params={"offset": 50}, content=b"later")
        assert gap.status_code == 422
        assert (await client.post(f"{at}/ended", json={"exit_code": 300})).status_code == 422
        assert (await client.post(f"{at}/ended", json={"exit_code": 3})).status_code == 200
        assert (await shell.read(), await shell.close()) == (b"", 3)
        late = await client.post(f"{at}/printed", params={"offset": 11}, content=b"late")
        assert late.status_code == 404
