"""Real ranks that hang in a collective are found, and those that only look like it are not.

``hang_cases.json`` is what ``benchmarks/hanging_collectives.py`` recorded of two real ranks of
torch 2.15 with gloo: the cores that each used, tick by tick, in each case.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

import pytest

from benchpool_scheduler.configuration import load
from benchpool_scheduler.contract import State
from benchpool_scheduler.runtime import WorkerId
from benchpool_scheduler.telemetry.sampler import NoSampler, NoWorkers, Sampling
from benchpool_scheduler.telemetry.samples import WorkerSample
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import SUSAN, make_pool, opened, reached, sleeper
from benchpool_support.scripted import ScriptedRuntime, devices

YAML = """
version: 1
projects: [{name: story, quota: 8, members: [susan]}]
hanging: {after_s: 1200}
"""
TICK_S = 10.0
MISSED = {"all_reduce, the other rank sleeps, and a thread of the first computes"}
"""What hangs and is busy all the same is taken for alive."""


@dataclass(frozen=True)
class Case:
    """A recording: the cores that each of two ranks used, tick by tick."""

    case: str
    hangs: bool
    cores: list[list[float]]

    def __str__(self) -> str:
        return self.case.replace(" ", "-").replace(",", "")


CASES = [Case(**one) for one in json.loads(Path(__file__).with_name("hang_cases.json").read_text())]


@pytest.mark.parametrize("recorded", CASES, ids=str)
async def test_what_two_real_ranks_use_tells_whether_they_hang(
    tmp_path: Path, recorded: Case
) -> None:
    clock = FakeClock()
    pool = make_pool(
        tmp_path,
        runtime=ScriptedRuntime(devices(2)),
        clock=clock,
        configuration=load(YAML),
        sampling=Sampling(NoSampler(), TICK_S, workers=NoWorkers()),
    )
    async with opened(pool):
        asked = sleeper(project="story", workers=2)
        job = await reached(pool, (await pool.jobs.submit(SUSAN, asked)).id, State.RUNNING)
        found = []
        await pool.inside.hangs.look()
        for cores in islice(cycle(recorded.cores), 130):
            clock.pass_s(TICK_S)
            pool.inside.hangs.measured(
                [
                    WorkerSample(WorkerId(job.id, 1, rank), clock.now(), TICK_S, used * TICK_S)
                    for rank, used in enumerate(cores)
                ]
            )
            await pool.inside.hangs.look()
            reason = pool.jobs.detail(SUSAN, job.id).job.reason
            found.append(reason is not None and reason.code == "hanging")
        assert found[-1] is (recorded.hangs and recorded.case not in MISSED)
        assert not any(found[:115]), "not before twenty minutes of silence"


def test_every_kind_of_case_is_there() -> None:
    assert len(CASES) == 8
    assert {one.case for one in CASES if not one.hangs} == {
        "barrier while the other rank evaluates",
        "many small all_reduces without a word",
        "plain long computation on both ranks",
    }
