"""Ranks that hang in a collective are detected, and similar healthy ranks are not.

``hang_cases.json`` is the recording by ``benchmarks/hanging_collectives.py`` of two real ranks of
torch 2.15 with gloo: the cores that each rank used in each case, by tick.
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
"""Cases that are not detected: the ranks hang but use processor time."""


@dataclass(frozen=True)
class Case:
    """Recording of the cores that each of two ranks used, by tick."""

    case: str
    hangs: bool
    cores: list[list[float]]

    def __str__(self) -> str:
        return self.case.replace(" ", "-").replace(",", "")


CASES = [Case(**one) for one in json.loads(Path(__file__).with_name("hang_cases.json").read_text())]


@pytest.mark.parametrize("recorded", CASES, ids=str)
async def test_recorded_ranks_are_classified_as_hanging_or_alive(
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


def test_recorded_cases_are_complete() -> None:
    assert len(CASES) == 8
    assert {one.case for one in CASES if not one.hangs} == {
        "barrier while the other rank evaluates",
        "many small all_reduces without a word",
        "plain long computation on both ranks",
    }
