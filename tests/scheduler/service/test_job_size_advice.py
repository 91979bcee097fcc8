"""Reasons why a job can never run, and the remedies: a job that follows the advice is accepted."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchpool_scheduler.contract import JobSubmission
from benchpool_scheduler.errors import InvalidInput, Refused
from benchpool_scheduler.runtime import NodeFacts
from benchpool_scheduler.service import Caller, Pool
from benchpool_support.pools import make_pool, opened, sleeper, story
from benchpool_support.scripted import ScriptedRuntime, machine

ROOM = story(
    """
version: 1
build: {default: 0}
projects:
  - {name: lab, quota: 12, limit: 20, members: [susan]}
  - {name: course, quota: 0, limit: 4, members: [joe]}
  - {name: closed, quota: 0, limit: 0, members: [kim]}
  - {name: guests, quota: 2, limit: 16, members: [eve]}
topology: [example.org/rack]
"""
)
MACHINES = (("large", "A100", 8, 32), ("small", "H100", 4, 16), ("cores", "A100", 1, 64))
SUSAN, JOE, KIM, EVE = map(Caller, ("susan", "joe", "kim", "eve"))

Changed = Callable[[JobSubmission, int], dict[str, Any]]
WAYS: dict[str, Changed] = {
    r"at most (\d+) per worker, and for less of the rest": lambda _, most: {
        "cpus": most,
        "memory_gib": 1,
    },
    r"at most (\d+) per worker, or for more workers": lambda job, most: {
        "gpus": most,
        "workers": -(-job.gpus * job.workers // most),
    },
    r"at most (\d+) GPUs?": lambda _, most: {"gpus": most},
    r"at most (\d+) cores?": lambda _, most: {"cpus": most},
    r"at most (\d+) workers?": lambda _, most: {"workers": most},
    r"min_workers to at most (\d+)": lambda _, most: {"min_workers": most},
    r"(?i)allow( )preemption": lambda *_: {"preemptible": True},
    r"prefer( )the level": lambda job, _: {
        "required_level": None,
        "preferred_level": job.required_level,
    },
}
OF_THE_FIELD = r"at most (\d+) per worker(?!, and)"
"""Advice that names only the number, because the sentence begins with the amount of the field."""
CASES: Sequence[tuple[str, Caller, JobSubmission, str]] = [
    ("of several models", SUSAN, sleeper(gpus=16, gpu_models=("H100",)), "at most 4 per worker"),
    ("the limit is below the machine", JOE, sleeper(gpus=16), "Ask for at most 4 GPUs."),
    ("the limit is above the machine", EVE, sleeper(gpus=17), "Ask for at most 8 GPUs."),
    (
        "a gang beyond the limit",
        JOE,
        sleeper(gpus=4, workers=2),
        "Ask for at most 1 worker, or ask for at most 2 GPUs per worker.",
    ),
    (
        "a gang that cannot be made smaller by its workers",
        JOE,
        sleeper(gpus=5, workers=2),
        "Ask for at most 2 GPUs per worker.",
    ),
    (
        "larger than the pool",
        SUSAN,
        sleeper(gpus=4, workers=4),
        "Ask for at most 3 workers, or ask for at most 2 GPUs per worker.",
    ),
    ("a minimum", JOE, sleeper(workers=8, min_workers=6), "Set min_workers to at most 4."),
    ("without a guarantee", JOE, sleeper(preemptible=False), "0. Allow preemption."),
    (
        "beyond the guarantee",
        EVE,
        sleeper(gpus=3, preemptible=False),
        "Ask for at most 2 GPUs, or allow preemption.",
    ),
    (
        "beyond the guarantee, and too large for a machine",
        EVE,
        sleeper(gpus=9, preemptible=False),
        "2. Ask for at most 2 GPUs.",
    ),
    (
        "the machine with most cores has few GPUs",
        SUSAN,
        sleeper(gpus=8, cpus=70),
        "has 64. Ask for at most 32 per worker",
    ),
    (
        "the largest machine has too few cores",
        SUSAN,
        sleeper(gpus=9, cpus=40),
        "has 8 for training. Ask for at most 1 per worker.",
    ),
    (
        "cores and memory are both too large",
        SUSAN,
        sleeper(gpus=1, cpus=80, memory_gib=100),
        "has 64. Ask for at most 64 per worker, and for less of the rest.",
    ),
    (
        "no machine has both",
        SUSAN,
        sleeper(gpus=8, cpus=40),
        "all of that. Ask for at most 1 GPU per worker, or ask for at most 32 cores per worker.",
    ),
    (
        "larger than a level",
        SUSAN,
        sleeper(gpus=4, workers=3, required_level="rack"),
        "or prefer the level instead of requiring it.",
    ),
]


@pytest.fixture
async def pool(tmp_path: Path) -> AsyncIterator[Pool]:
    runtime = ScriptedRuntime(
        tuple(one for name, model, gpus, _ in MACHINES for one in machine(name, model, gpus))
    )
    runtime.facts = tuple(
        NodeFacts(name, {"example.org/rack": name}, cpus=cores, memory_gib=64.0)
        for name, *_, cores in MACHINES
    )
    async with opened(make_pool(tmp_path, configuration=ROOM, runtime=runtime)) as pool:
        yield pool


@pytest.mark.parametrize(
    ("who", "job", "words"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
async def test_job_with_advised_size_is_accepted(
    pool: Pool, who: Caller, job: JobSubmission, words: str
) -> None:
    with pytest.raises((InvalidInput, Refused)) as refused:
        await pool.jobs.preview(who, job)
    message = refused.value.message
    assert words in message
    followed = [
        made(job, int(number) if number.strip() else 0)
        for way, made in WAYS.items()
        for number in re.findall(way, message)
    ]
    followed += [
        {str(refused.value.field): int(most)} for most in re.findall(OF_THE_FIELD, message)
    ]
    assert followed
    for other in followed:
        await pool.jobs.preview(who, _changed(job, other))


async def test_project_with_limit_zero_refers_to_administrator(pool: Pool) -> None:
    with pytest.raises(Refused, match=r"at most 0\. Ask an administrator to raise its limit\."):
        await pool.jobs.preview(KIM, sleeper())


def _changed(job: JobSubmission, fields: dict[str, Any]) -> JobSubmission:
    kept = {name: getattr(job, name) for name in JobSubmission.__struct_fields__}
    return JobSubmission(**{**kept, **fields})
