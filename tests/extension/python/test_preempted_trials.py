"""A preempted trial of a sweep resumes as the same trial from its own checkpoint."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import benchpool
from benchpool import handles
from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_support.serving import CONFIGURATION, Served, served
from benchpool_support.waiting import until

pytestmark = pytest.mark.slow

STEPS, HALT = 60, 20

TRAIN = f"""
import pathlib, random, sys, time
from benchpool import checkpoint, log
rate, go = float(sys.argv[1]), pathlib.Path(sys.argv[2])
random.seed(1)
model = {{"weight": 0.0}}
for step in checkpoint.loop(range({STEPS}), model=model):
    model["weight"] = model["weight"] * 0.9 + rate * random.random()
    print("step", step, flush=True)
    log(weight=model["weight"], step=step)
    while step == {HALT} and not go.exists() and not checkpoint.should_stop():
        time.sleep(0.02)
print("result", repr(model["weight"]))
"""


def result_of(rate: float) -> str:
    """Return the result of a trial that runs without a pause."""
    drawing, weight = random.Random(1), 0.0
    for _ in range(STEPS):
        weight = weight * 0.9 + rate * drawing.random()
    return repr(weight)


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    patient = CONFIGURATION.replace("grace_s: 1", "grace_s: 120")
    with served(tmp_path_factory.mktemp("pool") / "state", configuration=patient) as running:
        yield running


@pytest.fixture
def job_of_joe(pool: Served) -> Iterator[JobSubmission]:
    with pool.client("joe") as client:
        yield JobSubmission(entry=CommandEntry(["sleep", "600"]), gpus=2, name="claimant")
        for job in client.jobs():
            client.cancel(job.id)


def test_preempted_trial_continues_as_same_trial_from_its_checkpoint(
    susan: Path, pool: Served, job_of_joe: JobSubmission
) -> None:
    (susan / "train.py").write_text(TRAIN)
    go = susan / "go"
    swept = benchpool.sweep(
        "train.py", "{lr}", str(go), values={"lr": [0.5, 0.25]}, metric="weight", goal="minimize",
        gpus=2, name="rates",
    )  # fmt: skip
    jobs = {row.number: handles.job(str(row.job)) for row in swept.trials}
    for job in jobs.values():
        until(lambda: f"step {HALT}\n" in job.logs(), "both trials wait at a step")  # noqa: B023
    with pool.client("joe") as client:
        claimant = client.submit(job_of_joe)
        until(lambda: client.job(claimant.id).job.state == "running", "the claimant runs")
        preempted = [job for job in jobs.values() if job.refresh().facts.preemptions]
        assert [len(job.facts.preemptions) for job in preempted] == [1], "one of two trials"
        client.cancel(claimant.id)
    until(lambda: preempted[0].refresh().facts.attempt == 2, "the trial runs again")
    go.touch()
    assert swept.wait().facts.text.startswith("2 of 2 trials begun: 2 done.")
    assert {row.number: row.job for row in swept.trials} == {0: jobs[0].id, 1: jobs[1].id}
    first, second = (preempted[0].logs(attempt=attempt) for attempt in (1, 2))
    steps = [line for line in (first + second).splitlines() if line.startswith("step ")]
    assert steps == [f"step {step}" for step in range(STEPS)], "no step is repeated or left out"
    assert f"step {HALT + 1}\n" in second
    for number, rate in enumerate((0.5, 0.25)):
        assert f"result {result_of(rate)}\n" in jobs[number].logs()
