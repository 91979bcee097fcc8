"""Notes of ended jobs: the traces that each rule matches, and the absence of other advice."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from random import Random

import click
import msgspec
import pytest

from benchpool_scheduler.accounting.job_notes import FinishedJob, note, unmeasured
from benchpool_scheduler.accounting.job_notes.rules import RULES
from benchpool_scheduler.cli import commands
from benchpool_scheduler.contract.job_usage import JobMeasurements, JobUsage
from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.telemetry import Database
from benchpool_scheduler.telemetry.sqlite_storage import SqliteFile
from benchpool_support.job_traces import HEALTHY, LABELLED, POOL, TICK_S, Trace, finished

VARIANTS = 5
MOST_BYTES = 2048


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    found = Database(SqliteFile(tmp_path), lambda: 1_010_000.0)
    found.open()
    yield found
    found.close()


def noted(trace: Trace, database: Database, job: str = "k3aa0000") -> JobUsage:
    return note(finished(trace, database, job), job)


@pytest.mark.parametrize("rule", [rule.name for rule in RULES])
def test_rule_matches_its_traces(rule: str, database: Database) -> None:
    for number in range(VARIANTS):
        found = noted(LABELLED[rule](Random(number)), database, f"{rule}-{number}")
        assert found.rule == rule, (number, found)
        assert found.change
        assert len(found.figures) == 3


@pytest.mark.parametrize("number", range(len(HEALTHY)))
def test_healthy_job_gets_no_advice(number: int, database: Database) -> None:
    for seed in range(VARIANTS):
        found = noted(HEALTHY[number](Random(seed)), database, f"job-{seed}")
        assert (found.rule, found.change, found.option) == (None, "", ""), found
        assert "nothing stands out" in found.text


def test_labelled_traces_are_sufficient() -> None:
    assert set(LABELLED) == {rule.name for rule in RULES}
    assert len(RULES) >= 12
    assert VARIANTS * (len(LABELLED) + len(HEALTHY)) >= 120


def test_advice_is_valid_submit_option(database: Database) -> None:
    submit = commands.group().commands["submit"]
    advised = set()
    for rule, make in LABELLED.items():
        found = noted(make(Random(1)), database, rule)
        if found.option:
            advised.add(found.option.split()[0])
            context = submit.make_context("submit", [*shlex.split(found.option), "train.py"])
            assert isinstance(context, click.Context)
    flags = ("cpus", "gpus", "memory", "prefer-level", "non-preemptible", "time-limit", "gpu-model")
    assert advised == {f"--{flag}" for flag in flags}


def test_advice_is_limited_to_machine_size(database: Database) -> None:
    full = Trace([[(60, 0.3)]], JobSpec(cpus=48), used_cpus=47, cpus=48)
    assert noted(full, database, "a").option == f"--cpus {POOL.cpus:g}"
    all_of_it = Trace([[(60, 0.3)]], JobSpec(cpus=64), used_cpus=63, cpus=64)
    found = noted(all_of_it, database, "b")
    assert (found.rule, found.option) == ("cpus-full", "")
    assert "No machine here has more CPUs" in found.change


def test_note_contains_numbers_of_job(database: Database) -> None:
    one = Trace([[(60, 0.12)]], used_cpus=1.0, cpus=8, memory_gib=41.0)
    found = noted(one, database)
    assert found.text == "Its GPU was busy 12 % of the time, while one of 8 CPUs was in use."
    assert found.change == "Load data in more processes: `DataLoader(..., num_workers=7)`."
    assert [(it.name, it.text) for it in found.figures] == [
        ("GPU busy", "12 %"),
        ("GPU memory", "41.0 GiB of 80"),
        ("CPUs", "1.0 of 8"),
    ]
    few = Trace([[(60, 0.12)]], JobSpec(cpus=1), used_cpus=1.0, cpus=1)
    found = noted(few, database, "other")
    assert found.text == "Its GPU was busy 12 % of the time, and 1.0 of 1 CPU in use."
    assert found.option == "--cpus 2"


def test_idle_gpus_reduce_advised_gpus_or_workers(database: Database) -> None:
    busy, idle = [(60, 0.8)], [(60, 0.0)]
    half = Trace([busy, idle, busy, idle], JobSpec(gpus=2, workers=2), nodes=1)
    assert noted(half, database, "a").option == "--gpus 1"
    whole = Trace([busy, busy, idle, idle], JobSpec(gpus=2, workers=2), nodes=1)
    assert noted(whole, database, "b").option == "--workers 1"


def test_short_measurement_is_reported_in_note(database: Database) -> None:
    gap = Trace([[(30, 0.0), (30, None)]])
    found = noted(gap, database, "a")
    assert (found.rule, found.coverage) == (None, 0.5)
    assert found.text == (
        "Only 50 % of its GPU time was measured, 60 samples per GPU: too little for advice."
    )
    failed = noted(Trace([[(1, 0.5)]], memory_gib=79.5, failed=True), database, "d")
    assert (failed.rule, failed.option) == ("gpu-memory-full", "--gpu-model H200")
    short = noted(Trace([[(1, 0.0)]]), database, "b")
    assert short.text == "It ran for 1 min, too short for advice."
    gone = noted(Trace([[(2, 0.0), (58, None)]]), database, "e")
    assert gone.text.startswith("Only 3 % of its GPU time was measured, 4 samples per GPU")
    never = noted(Trace([[(0.5, None)]], used_cpus=None), database, "f")
    assert never.text == "It ran for 30 s, too short for advice."
    nothing = noted(Trace([[(60, None)]], used_cpus=None), database, "c")
    assert nothing.text == "Its GPU use was not measured."
    assert [it.name for it in nothing.figures] == ["GPU-hours"]
    assert unmeasured("d").text == "Its resource use was not measured."


def test_unmeasured_values_match_no_rule(database: Database) -> None:
    found = noted(Trace([[(60, 0.12)]], used_cpus=None, sm=None), database)
    assert found.rule is None
    assert [it.name for it in found.figures] == ["GPU busy", "GPU memory", "Energy"]
    # Measured by dcgm-exporter only: no rule has values of processors.
    assert found.text.endswith(
        "nothing stands out that should be changed. Its CPU use was not measured."
    )
    job = finished(Trace([[(60, 0.83)]]), database, "half")
    half = msgspec.structs.replace(job.measured, worker_covered_s=job.measured.worker_s / 2)
    found = note(FinishedJob(job.short_id, job.failed, job.spec, half, job.pool), "half")
    assert found.text.endswith("Its CPU use was measured for only 50 % of the time.")


def test_simulated_gpus_get_only_simulation_note(database: Database) -> None:
    found = noted(Trace([[(60, 0.02)]], used_cpus=0.02, simulated=True), database)
    assert found.simulated
    assert found.text.startswith("Its GPUs were simulated: ")
    assert found.figures[0].text == "2 % (simulated)"
    assert (found.rule, found.change) == (None, "")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_rule_requires_minimum_samples(rule: object, database: Database) -> None:
    one = next(it for it in RULES if it is rule)
    job = finished(LABELLED[one.name](Random(0)), database, one.name)
    few = msgspec.structs.replace(job.measured, samples=one.samples - 1)
    assert one.finds(job)
    assert not one.finds(FinishedJob(job.short_id, job.failed, job.spec, few, job.pool))


def test_measurements_of_largest_job_stay_small() -> None:
    large = {
        name: 10**12 if field is int else 123_456_789.1
        for name, field in JobMeasurements.__annotations__.items()
    }
    kept = JobMeasurements(**large)  # type: ignore[arg-type]
    assert len(msgspec.json.encode(kept)) <= MOST_BYTES / 2


def test_note_of_gang_stays_small(database: Database) -> None:
    gang = Trace([[(40, 0.3)]] * 16, JobSpec(gpus=4, workers=4), nodes=4)
    job = finished(gang, database, "gang")
    assert len(msgspec.json.encode(job.measured)) <= MOST_BYTES
    assert len(msgspec.json.encode(note(job, "gang"))) <= MOST_BYTES
    assert job.measured.samples == 40 * 60 / TICK_S
