"""A notebook server releases its GPUs and continues, with real kernels and terminals."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchpool_support import live_kernels, terminals
from benchpool_support.dialog import made
from benchpool_support.notebook_server import NotebookServer, notebook_server
from benchpool_support.scripted_benches import ScriptedBenches, scripted_benches
from benchpool_support.waiting import until

pytestmark = pytest.mark.slow

NOTE = "benchpool-idle-bench.md"
SEEN = "import os; print(os.environ['CUDA_VISIBLE_DEVICES'] or 'none')"


@pytest.fixture
def benches() -> Iterator[ScriptedBenches]:
    with scripted_benches() as running:
        running.facts = {"step": "asked"}  # each cell run is reported immediately
        yield running


@pytest.fixture
def bench(benches: ScriptedBenches, tmp_path: Path) -> Iterator[NotebookServer]:
    """Yield a server with a GPU, started as by the spawner of a workstation."""
    environ = {
        "BENCHPOOL_URL": benches.url,
        "JUPYTERHUB_API_TOKEN": "susans",
        "JUPYTERHUB_USER": "susan",
        "BENCHPOOL_SERVER_START": "1",
        "CUDA_VISIBLE_DEVICES": "GPU-1",
    }
    with notebook_server(tmp_path, environ) as running:
        yield running


def now(server: NotebookServer) -> dict[str, Any]:
    return dict(made(server.page.get("benchpool/bench")))


def given_back(server: NotebookServer) -> dict[str, Any]:
    def done() -> dict[str, Any] | None:
        found: dict[str, Any] | None = now(server)["given_back"]
        return found if found is not None and found["done"] else None

    found = until(done, "the GPUs are given back")
    assert found is not None
    return found


async def test_kernels_continue_without_gpu_and_note_is_written(
    bench: NotebookServer, benches: ScriptedBenches
) -> None:
    (bench.root / NOTE).write_text("mine")
    kernel = live_kernels.start(bench.page)
    assert "GPU-1" in await live_kernels.run(bench.page, kernel, f"x = 1; {SEEN}")
    waits, _ = await terminals.left_open(bench.page, "echo hel''lo", until="hello")
    benches.refusals = 1  # a process needs a moment to end
    benches.facts = {"step": "due", "command": "release"}
    await live_kernels.run(bench.page, kernel, "0")
    released = given_back(bench)
    assert (released["kernels"], released["gpus"], released["asked"]) == (1, 1, False)
    assert benches.asked.count("released") == 2

    # The kernel continues without its variables. New kernels and terminals see no GPU.
    assert "none" in await live_kernels.run(bench.page, kernel, SEEN)
    assert "gone" in await live_kernels.run(bench.page, kernel, "print('x' in dir() or 'gone')")
    assert bench.page.post(f"api/kernels/{kernel}/restart").status_code == 200
    assert "none" in await live_kernels.run(bench.page, kernel, SEEN)
    another = live_kernels.start(bench.page)
    assert "none" in await live_kernels.run(bench.page, another, SEEN)
    shown = await terminals.typed(bench.page, 'echo "sees[$CUDA_VISIBLE_DEVICES]"')
    assert "sees[]" in shown
    assert waits not in [one["name"] for one in bench.page.get("api/terminals").json()]

    assert (bench.root / NOTE).read_text() == "mine"
    assert released["note"] == "benchpool-idle-bench-2.md"
    note = (bench.root / released["note"]).read_text()
    assert "idle for 1 h" in note
    assert "its kernels were restarted without" in note


def test_cell_started_during_release_keeps_gpu(
    bench: NotebookServer, benches: ScriptedBenches
) -> None:
    kernel = live_kernels.start(bench.page)
    works = live_kernels.run(bench.page, kernel, "import time; time.sleep(600)", until="busy")
    before: list[int] = []

    def meanwhile() -> None:
        before.append(len(benches.reports) - 1)
        asyncio.run(works)
        until(lambda: now(bench)["busy_kernels"] == 1, "the cell runs")
        benches.facts = {"step": "cpu-phase"}

    benches.facts = {"step": "due", "command": "release"}
    benches.meanwhile = meanwhile
    asyncio.run(live_kernels.run(bench.page, kernel, "0"))
    until(lambda: before and len(benches.reports) > before[0] + 1, "it is reported again")
    assert [one["busy_kernels"] for one in benches.reports[before[0] :]][:2] == [0, 1]
    assert now(bench)["given_back"] is None


async def test_release_request_waits_for_terminal_programs(
    bench: NotebookServer, benches: ScriptedBenches
) -> None:
    until(lambda: benches.reports, "the server reports")
    name, _ = await terminals.left_open(bench.page, "echo hel''lo; sleep 600", until="hello")
    until(lambda: now(bench)["terminal_programs"] == 1, "the program runs")
    refused = bench.page.post("benchpool/bench/give-back", json={})
    assert refused.status_code == 409
    assert "1 program is running in terminals (sleep)" in refused.json()["error"]["message"]
    bench.page.delete(f"api/terminals/{name}")
    until(lambda: now(bench)["terminal_programs"] == 0, "it has ended")
    assert bench.page.post("benchpool/bench/give-back", json={}).status_code == 200
    assert given_back(bench)["asked"]
    assert "susan requested it." in (bench.root / NOTE).read_text()


def test_keep_request_succeeds_after_scheduler_returns(
    bench: NotebookServer, benches: ScriptedBenches
) -> None:
    until(lambda: benches.reports, "the server reports")
    assert benches.reports[0]["gives_up"] is True
    assert now(bench)["idleness"]["step"] == "asked"
    benches.away = True
    assert bench.page.post("benchpool/bench/keep", json={}).status_code == 503
    benches.away = False
    kept = bench.page.post("benchpool/bench/keep", json={})
    assert kept.status_code == 200, kept.text
    assert kept.json()["idleness"]["keeps_left"] == 2


async def test_note_is_written_before_server_stop(
    bench: NotebookServer, benches: ScriptedBenches
) -> None:
    benches.facts = {"step": "due", "command": "note", "act": "stop"}
    await live_kernels.run(bench.page, live_kernels.start(bench.page), "0")
    until(lambda: any(one["noted"] for one in benches.reports), "it is noted")
    assert "was stopped" in (bench.root / NOTE).read_text()
    assert not (bench.root / "benchpool-idle-bench-2.md").exists()


async def test_note_of_dropped_stop_is_removed_and_next_stop_leaves_new_one(
    bench: NotebookServer, benches: ScriptedBenches
) -> None:
    kernel = live_kernels.start(bench.page)

    async def answers(noted: bool, **facts: object) -> None:
        """Change the answer, run a cell, and wait for the report that follows the answer."""
        benches.facts, before = {"act": "stop", **facts}, len(benches.reports)
        await live_kernels.run(bench.page, kernel, "0")
        until(lambda: [it for it in benches.reports[before:] if it["noted"] is noted], "reported")

    await answers(True, step="due", command="note")
    note = bench.root / NOTE
    first = note.read_text()
    # The Hub is asked to stop the server: the note stays until the stop or its end.
    await answers(True, step="due", stopping=True)
    await answers(True, step="due", stopping=True)
    assert note.read_text() == first
    await answers(True, step="asked")  # used again: this report is still the old one
    await answers(False, step="asked")
    assert not note.exists()
    # A later stop leaves its own note. Its owner's changes to it are not removed.
    await answers(True, step="due", idle_s=7200.0, command="note")
    assert "idle for 2 h" in note.read_text()
    note.write_text("mine")
    await answers(True, step="asked")
    await answers(False, step="asked")
    assert note.read_text() == "mine"
    assert len(list(bench.root.glob("benchpool-idle-bench*"))) == 1
