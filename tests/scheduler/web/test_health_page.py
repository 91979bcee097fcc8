"""The page *Health*: each component shows a figure, or its problem with a remedy."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from benchpool_scheduler.contract import GpuState
from benchpool_scheduler.runtime import DeviceState
from benchpool_scheduler.service import Pool
from benchpool_scheduler.web.health_page import TOPICS, HealthFigures, health_lines
from benchpool_support.pools import ADMIN, SUSAN, make_pool, opened
from benchpool_support.scripted import ScriptedRuntime, devices
from benchpool_support.stage import application, gpu, served

FIGURES = HealthFigures(12, 0.0031, 3, 2, 2**20, 2**35, 2**40, 0)


def test_healthy_components_show_figures_and_no_problems() -> None:
    lines = list(health_lines(FIGURES, {}, [gpu(0), gpu(1)]))
    assert [(line.name, line.fact) for line in lines] == [
        ("Scheduler", "its last pass took 3.1 ms; 12 since its start"),
        ("Hub", "3 users, 2 servers running or starting"),
        ("Store", "the database takes 1.0 MiB; 32.0 GiB of 1024.0 GiB are free"),
        ("GPUs", "2 of 2 GPUs can be used"),
    ]
    assert not any(line.problems for line in lines)


@pytest.mark.parametrize("topic", [*TOPICS, "something new"])
def test_problem_is_shown_only_at_its_component(topic: str) -> None:
    lines = health_lines(FIGURES, {topic: "It is so: do this."}, [gpu(0)])
    where = TOPICS.get(topic, "Scheduler")
    assert {line.name: line.problems for line in lines if line.problems} == {
        where: ("It is so: do this.",)
    }


def test_broken_gpu_is_named_with_remedy() -> None:
    gpus = [gpu(0), gpu(3, GpuState.BROKEN, note="fell off the bus")]
    *_, line = health_lines(FIGURES, {"devices": "GPU 3 of lab1: fell off the bus."}, gpus)
    assert line.fact == "1 of 2 GPUs can be used"
    assert line.problems == (
        "GPU lab1: 3 is broken (fell off the bus). Check it with `nvidia-smi` on that "
        "machine; drain the machine before you work on it.",
    )


def test_broken_invariants_are_problem_of_scheduler() -> None:
    broke = HealthFigures(12, 0.0, 3, None, 0, None, 0, breaches=2)
    line, *_ = health_lines(broke, {}, [])
    assert "2 invariant violations since its start" in line.problems[0]


# --------------------------------------------------------------------------- the page


@pytest_asyncio.fixture
async def pool(tmp_path: Path) -> AsyncIterator[Pool]:
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        yield pool


@pytest.mark.asyncio
async def test_health_page_is_for_administrators(
    pool: Pool,
) -> None:
    people = {"ada": ADMIN, "susan": SUSAN}
    with served(lambda: application(pool, people)) as url:
        async with httpx.AsyncClient(base_url=url, trust_env=False) as http:
            page = await http.get("health", headers={"Cookie": "reader=ada"})
            assert "Scheduler, Hub, store and GPUs are healthy." in page.text
            runtime = pool.runtime
            assert isinstance(runtime, ScriptedRuntime)
            runtime.mark(runtime.gpus[2].uuid, DeviceState.BROKEN, "XID 79")
            await pool.housekeeping.look()
            page = await http.get("health", headers={"Cookie": "reader=ada"})
            assert "Something is wrong with: GPUs." in page.text
            assert "8 of 9 GPUs can be used" in page.text
            assert "is broken (XID 79)" in page.text
            refused = await http.get("health", headers={"Cookie": "reader=susan"})
            assert refused.status_code == 403
