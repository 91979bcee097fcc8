"""A cell of a parked bench waits visibly for its GPU, with a real kernel and server.

The kernel is an unmodified ipykernel. A library named like the CUDA driver stands in for the GPU;
its calls block as the driver's do.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_server.services.kernels.kernelmanager import MappingKernelManager
from playwright.async_api import expect
from tornado.websocket import WebSocketClientConnection

from benchpool.server.parked.parked_watch import ParkedWatch
from benchpool.server.pool_access import PoolAccess
from benchpool_scheduler.client import Credentials
from benchpool_support import live_kernels, parking_stage, terminals
from benchpool_support.bench_lines import line
from benchpool_support.browser import chromium
from benchpool_support.dialog import write_notebook
from benchpool_support.notebook_server import TOKEN
from benchpool_support.parking_stage import GIB, READ, SECRET, ParkingStage
from benchpool_support.pools import HUB, JOE, SUSAN, sleeper
from benchpool_support.scripted_cuda import GPU

pytestmark = pytest.mark.slow


@dataclass
class Cell:
    """Cell that was sent, with the messages that its page received."""

    socket: WebSocketClientConnection
    id: str
    received: list[dict[str, Any]] = field(default_factory=list)

    def text(self) -> str:
        return "".join(str(it["content"].get("text", "")) for it in self.received)

    def kinds(self) -> list[str]:
        return [it["msg_type"] for it in self.received]

    async def until(self, kind: str, *words: str) -> None:
        """Read until a message of this kind arrives and the words were shown."""
        async with asyncio.timeout(120):
            while kind not in self.kinds() or any(word not in self.text() for word in words):
                message = json.loads(await self.socket.read_message() or "{}")
                if message.get("parent_header", {}).get("msg_id") == self.id:
                    self.received.append(message)


@asynccontextmanager
async def sent(stage: ParkingStage, code: str) -> AsyncIterator[Cell]:
    """Send a cell as a page does."""
    where = f"api/kernels/{stage.kernel}/channels"
    async with terminals.socket(stage.server.page, where) as channel:
        yield await send(channel, code)


async def send(channel: WebSocketClientConnection, code: str) -> Cell:
    """Send a cell on the connection of a page."""
    id_ = uuid.uuid4().hex
    header = {
        "msg_id": id_,
        "msg_type": "execute_request",
        "username": "",
        "session": id_,
        "version": "5.3",
    }
    content = {"code": code, "silent": False, "store_history": True, "stop_on_error": True}
    request = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
    await channel.write_message(json.dumps({**request, "channel": "shell"}))
    return Cell(channel, id_)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ParkingStage]:
    with parking_stage.stage(tmp_path_factory.mktemp) as running:
        yield running


@pytest.fixture
async def parked(stage: ParkingStage) -> AsyncIterator[ParkingStage]:
    await stage.begin()
    await stage.park()
    yield stage
    stage.end()


async def test_cell_waits_until_borrower_leaves_and_then_runs(
    parked: ParkingStage,
) -> None:
    job = parked.pool.do(parked.pool.pool.jobs.submit(JOE, sleeper()))
    parked.pool.do(parked.runtime.until_launched(1))
    async with sent(parked, READ) as cell:
        await cell.until("stream", "the training job on it is being paused, which takes up to 20 s")
        ((worker, notice),) = parked.pool.do(parked.runtime.until_noticed(1))
        assert (worker.job, notice.for_) == (job.id, "benches")
        assert "execute_input" not in cell.kinds()
        parked.pool.loop.call_soon_threadsafe(parked.runtime.end, worker, 143)
        await cell.until("execute_reply", "the same\n")
    assert "clear_output" in cell.kinds()
    assert parked.step() is None
    assert parked.machine.processes(GPU) != []
    parked.pool.do(parked.pool.pool.jobs.act(JOE, job.id, "cancel"))


async def test_interrupted_waiting_cell_does_not_run(parked: ParkingStage) -> None:
    parked.machine.others[GPU] = {1: 79 * GIB}  # another process holds the memory of the GPU
    async with sent(parked, "run_anyway = 1") as cell:
        await cell.until("stream", "Your GPU comes back")
        answer = parked.server.page.post(f"api/kernels/{parked.kernel}/interrupt")
        assert answer.status_code == 204
        await cell.until("execute_reply")
        (error,) = [it["content"] for it in cell.received if it["msg_type"] == "error"]
        assert error["ename"] == "KeyboardInterrupt"
    parked.machine.others.clear()
    await parked.stands(None)
    output = await live_kernels.run(
        parked.server.page, parked.kernel, "print('run_anyway' in dir())"
    )
    assert output == "False\n"


async def test_cells_of_page_keep_order(parked: ParkingStage) -> None:
    async with sent(parked, "order = [1]") as first:
        second = await send(first.socket, "print(order + [2])")
        await second.until("execute_reply", "[1, 2]\n")


async def test_cell_of_direct_client_unparks_bench(parked: ParkingStage) -> None:
    client = BlockingKernelClient()
    client.load_connection_file(str(parked.runtime_folder / f"kernel-{parked.kernel}.json"))
    client.start_channels()
    client.execute(READ)
    assert client.get_shell_msg(timeout=120)["content"]["status"] == "ok"
    client.stop_channels()
    (kernel,) = parked.machine.processes(GPU) or ()
    assert parked.machine.state(kernel) == "running"


async def test_cells_of_unparked_bench_are_not_held(stage: ParkingStage) -> None:
    await stage.begin()
    assert await live_kernels.run(stage.server.page, stage.kernel, READ) == "the same\n"
    stage.end()
    assert stage.pool.do(_leases(stage)) == []


class OpenPage:
    """Page whose cell waits until it is released."""

    kernel_id = "none"

    def __init__(self) -> None:
        self.went_on = asyncio.Event()

    def show(self, text: str) -> None:
        raise AssertionError(f"nothing is parked, yet the page says: {text}")

    def let_go(self) -> None:
        self.went_on.set()

    def give_up(self) -> None:
        raise AssertionError("nobody interrupted it")


async def test_silent_pool_delays_cells_for_one_request(
    stage: ParkingStage,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:  # accepts connections and never responds
        where = [f"http://127.0.0.1:{deaf.getsockname()[1]}", stage.pool.url]
        access = PoolAccess(lambda: Credentials(where[0], SECRET))
        kernels: Any = MappingKernelManager
        watch = ParkedWatch(access, kernels(), "susan", "", offered=True)
        looking = asyncio.create_task(watch.run())
        for must_wait_after in (False, True):
            page = OpenPage()
            watch.hold(page)
            await asyncio.wait_for(page.went_on.wait(), 120)
            assert watch.must_wait is must_wait_after
            where.reverse()
            await access.forget()
        looking.cancel()


async def _leases(stage: ParkingStage) -> list[Any]:
    return stage.pool.pool.benches.leases(SUSAN)


async def test_jupyterlab_shows_wait_reason_and_then_output(
    stage: ParkingStage,
) -> None:
    stage.lease = stage.pool.do(stage.pool.pool.benches.reserve(HUB, line().lease)).id
    write_notebook(stage.server.root / "model.ipynb", parking_stage.FILL, READ)
    async with chromium() as browser:
        page = await browser.new_page(viewport={"width": 1100, "height": 600})
        await page.goto(f"{stage.server.url}lab/tree/model.ipynb?token={TOKEN}")
        cells = page.locator(".jp-Notebook .jp-CodeCell")
        await cells.nth(1).wait_for()
        await live_kernels.until_connected(stage.server.page)
        await expect(page.locator("#jp-main-statusbar")).to_contain_text("| Idle")
        await cells.nth(0).locator(".cm-content").click()
        await page.keyboard.press("Shift+Enter")
        await expect(cells.nth(0).locator(".jp-InputPrompt")).to_have_text("[1]:")
        await stage.park()
        stage.machine.others[GPU] = {1: 79 * GIB}
        await cells.nth(1).locator(".cm-content").click()
        await page.keyboard.press("Shift+Enter")
        await expect(cells.nth(1).locator(".jp-OutputArea")).to_contain_text("Your GPU comes back")
        await expect(cells.nth(1).locator(".jp-InputPrompt")).to_have_text("[*]:")
        if os.environ.get("BENCHPOOL_SCREENSHOTS"):
            await page.screenshot(path=f"{os.environ['BENCHPOOL_SCREENSHOTS']}/parked-cell.png")
        stage.machine.others.clear()
        await expect(cells.nth(1).locator(".jp-OutputArea")).to_have_text("the same")
        await expect(cells.nth(1).locator(".jp-InputPrompt")).to_have_text("[2]:")
        if os.environ.get("BENCHPOOL_SCREENSHOTS"):
            await page.screenshot(path=f"{os.environ['BENCHPOOL_SCREENSHOTS']}/parked-back.png")
    (stage.kernel,) = (it["id"] for it in stage.server.page.get("api/kernels").json())
    stage.end()
