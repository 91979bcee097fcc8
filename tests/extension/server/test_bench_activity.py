"""Activity of kernels and terminals that a notebook server tracks without a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchpool_support import live_kernels, terminals
from benchpool_support.dialog import made
from benchpool_support.notebook_server import NotebookServer, notebook_server
from benchpool_support.waiting import until

pytestmark = pytest.mark.slow


def facts(server: NotebookServer) -> dict[str, Any]:
    return dict(made(server.page.get("benchpool/bench")))


def programs(server: NotebookServer) -> int:
    return int(facts(server)["terminal_programs"])


@pytest.fixture(autouse=True)
def nothing_left(server: NotebookServer) -> Any:
    yield
    for kernel in server.page.get("api/kernels").json():
        server.page.delete(f"api/kernels/{kernel['id']}")
    for terminal in server.page.get("api/terminals").json():
        server.page.delete(f"api/terminals/{terminal['name']}")


async def tracked_kernel(server: NotebookServer) -> str:
    """Start a kernel, run cells until the server has counted one, and return the kernel's ID.

    The server subscribes to the kernel on its own connection. It misses messages sent before that
    connection is open, and a page may be faster.
    """
    before, kernel = facts(server)["executions"], live_kernels.start(server.page)
    while facts(server)["executions"] == before:
        await live_kernels.run(server.page, kernel, "0")
    return kernel


async def test_running_cell_is_tracked_without_browser(server: NotebookServer) -> None:
    kernel = await tracked_kernel(server)
    await live_kernels.run(server.page, kernel, "import time; time.sleep(600)", until="busy")
    until(lambda: facts(server)["busy_kernels"] == 1, "the running cell is seen")
    server.page.post(f"api/kernels/{kernel}/interrupt")
    until(lambda: facts(server)["busy_kernels"] == 0, "the end of the cell is seen")
    before = facts(server)["executions"]
    await live_kernels.run(server.page, kernel, "1 + 1")
    quiet = until(
        lambda: (now := facts(server))["executions"] > before and now, "the cell is counted"
    )
    assert (quiet["kernels"], quiet["busy_kernels"]) == (1, 0)


async def test_widget_reply_does_not_hide_running_cell(server: NotebookServer) -> None:
    kernel = await tracked_kernel(server)
    # The reply to another request arrives while the cell runs. It is not the end of the cell.
    beside = """\
import time
from IPython import get_ipython
kernel = get_ipython().kernel
parent = kernel.session.msg("comm_msg")
for state in ("busy", "idle"):
    kernel.session.send(kernel.iopub_socket, "status", {"execution_state": state}, parent=parent)
print("answered", flush=True)
time.sleep(600)
"""
    await live_kernels.run(server.page, kernel, beside, until="busy")
    until(lambda: states(server) == ["idle"], "Jupyter takes the answer for the end of the cell")
    until(lambda: facts(server)["busy_kernels"] == 1, "the cell still runs")


def states(server: NotebookServer) -> list[str]:
    return [one["execution_state"] for one in server.page.get("api/kernels").json()]


async def test_restarted_kernel_runs_no_cell(
    server: NotebookServer,
) -> None:
    kernel = live_kernels.start(server.page)
    await live_kernels.run(server.page, kernel, "0")
    await live_kernels.run(server.page, kernel, "import time; time.sleep(600)", until="busy")
    until(lambda: facts(server)["busy_kernels"] == 1, "the running cell is seen")
    assert server.page.post(f"api/kernels/{kernel}/restart").status_code == 200
    until(lambda: facts(server)["busy_kernels"] == 0, "the new kernel runs nothing")


async def test_terminal_programs_count_and_idle_shells_do_not(
    server: NotebookServer,
) -> None:
    until(lambda: programs(server) == 0, "nothing runs")
    await terminals.left_open(server.page, "echo hel''lo", until="hello")
    until(lambda: programs(server) == 0, "a shell that waits is no program")
    await terminals.left_open(server.page, "echo hel''lo; sleep 600", until="hello")
    until(lambda: programs(server) == 1, "a program in front")
    await terminals.left_open(server.page, "sleep 601 &", "echo hel''lo", until="hello")
    until(lambda: programs(server) == 2, "a program behind")


async def test_terminal_programs_of_other_server_are_not_counted(
    server: NotebookServer, tmp_path: Path
) -> None:
    with notebook_server(tmp_path, {}) as other:
        await terminals.left_open(other.page, "echo hel''lo; sleep 60", until="hello")
        until(lambda: programs(other) == 1, "the other's program runs")
        await terminals.left_open(server.page, "echo hel''lo; sleep 61", until="hello")
        until(lambda: programs(server) == 1, "our own program runs")
        assert programs(other) == 1


async def test_program_of_closed_terminal_counts(server: NotebookServer) -> None:
    name, _ = await terminals.left_open(
        server.page, "setsid nohup sleep 607 >/dev/null 2>&1 &", "echo hel''lo", until="hello"
    )
    server.page.delete(f"api/terminals/{name}")
    assert server.page.get("api/terminals").json() == []
    until(lambda: programs(server) == 1, "it goes on")
    await terminals.typed(server.page, "pkill -f 'sleep 607'")
    until(lambda: programs(server) == 0, "it has ended")
