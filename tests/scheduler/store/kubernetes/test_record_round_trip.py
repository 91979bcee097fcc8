"""Round trip of records through Kubernetes objects, without loss for any field value."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchpool_scheduler.contract import (
    CommandEntry,
    JobMeasurements,
    JobSubmission,
    ModuleEntry,
    NotebookEntry,
    ScriptEntry,
    SnapshotFile,
    Source,
    TrackerRun,
)
from benchpool_scheduler.contract.causes import EndCause
from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.lifecycle.states import TERMINAL, Intent, JobState
from benchpool_scheduler.resources.jobs import TrainingJobSpec, TrainingJobStatus
from benchpool_scheduler.resources.submissions import (
    HERE,
    SAME,
    as_spec,
    as_submission,
    bundle_of,
    files_of,
)
from benchpool_scheduler.store.awaited_job import Awaited
from benchpool_scheduler.store.kubernetes.cache import without_runtime_facts
from benchpool_scheduler.store.kubernetes.decoding import stored_job
from benchpool_scheduler.store.kubernetes.encoding import (
    MOST,
    MOST_WORKERS,
    StoredJob,
    WaitReport,
    as_status,
    newest_attempts,
)
from benchpool_scheduler.store.records import (
    AttemptRecord,
    JobProgress,
    JobRecord,
    Note,
    Place,
    PreemptionRecord,
    StopIntent,
    WorkerRecord,
)
from benchpool_scheduler.store.retries import FailureRecord, RetryRecord
from benchpool_support.examples import examples
from benchpool_support.job_specs import fields_of, job_specs

pytestmark = pytest.mark.slow

ID = "a" * 26
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
WORD = st.from_regex(r"[a-z]{1,12}", fullmatch=True)
TIMES = st.integers(0, 4_000_000_000_000_000).map(lambda micro: micro / 1e6)
GPUS = st.lists(WORD, max_size=3).map(tuple)
AMOUNT = st.floats(0, 1e9)


def maybe(of: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | of


NOTES = st.builds(
    Note,
    code=WORD,
    text=TEXT,
    remedy=TEXT,
    numbers=st.dictionaries(WORD, maybe(st.integers(-9, 9) | TEXT), max_size=3),
)
STOP_REQUESTS = st.builds(
    StopIntent,
    kind=st.sampled_from(Intent),
    at=TIMES,
    grace_s=AMOUNT,
    by=maybe(WORD),
    for_=TEXT,
    text=TEXT,
    claimant=maybe(WORD),
    held=st.booleans(),
    early=st.booleans(),
)
PLACES = st.builds(Place, node=WORD, gpus=GPUS)
FRACTION = st.floats(0, 1)
RUNS = st.builds(TrackerRun, tracker=st.just("mlflow"), url=st.just("https://ml.example/#/runs/1"))
PROGRESS = st.builds(
    JobProgress,
    at=TIMES,
    fraction=maybe(FRACTION),
    text=maybe(TEXT),
    checkpoint_at=maybe(TIMES),
    saved=maybe(FRACTION),
    step=maybe(st.integers(0, 10**9)),
    attempt=st.integers(0, 9),
    before=maybe(FRACTION),
    since=maybe(st.tuples(TIMES, FRACTION)),
    runs=st.lists(RUNS, max_size=3).map(tuple),
)
FAILURES = st.builds(
    FailureRecord,
    cause=maybe(st.sampled_from(EndCause)),
    traceback=maybe(WORD),
    xid=maybe(st.integers(0, 200)),
)
SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-1, 1) | TEXT
PARAMETERS = st.dictionaries(WORD, SCALARS | st.lists(SCALARS, max_size=3), max_size=3)
MEASURED = st.builds(JobMeasurements, **fields_of(JobMeasurements))
AWAITED = st.builds(
    Awaited,
    job=WORD,
    name=TEXT,
    outcome=maybe(st.sampled_from(sorted(TERMINAL))),
    tasks=st.integers(0, 1000),
)
WORKERS = st.builds(
    WorkerRecord,
    index=st.integers(0, 9),
    node=WORD,
    gpus=GPUS,
    started=maybe(TIMES),
    ended=maybe(TIMES),
    exit_code=maybe(st.integers(0, 255)),
    ended_by=maybe(WORD),
    text=maybe(TEXT),
    leaving=st.booleans(),
    failure=maybe(FAILURES),
)
RETRIES = st.builds(
    RetryRecord,
    attempt=st.integers(1, 9),
    cause=st.sampled_from(EndCause),
    at=TIMES,
    node=WORD,
    pause_s=AMOUNT,
    avoid_s=AMOUNT,
    xid=maybe(st.integers(0, 200)),
    exit_code=maybe(st.integers(0, 255)),
    traceback=maybe(WORD),
    step=maybe(st.integers(0, 10**9)),
    saved=st.booleans(),
)
ATTEMPTS = st.builds(
    AttemptRecord,
    job=st.just(ID),
    attempt=st.integers(1, 9),
    decided=TIMES,
    workers=st.lists(WORKERS, max_size=3).map(tuple),
    started=maybe(TIMES),
    ended=maybe(TIMES),
    exit_code=maybe(st.integers(0, 255)),
    ended_by=maybe(WORD),
    port=st.integers(1, 65535),
    cpus=maybe(st.floats(0.5, 96)),
    memory_gib=maybe(st.floats(0.5, 1024)),
)
PREEMPTIONS = st.builds(
    PreemptionRecord,
    job=st.just(ID),
    attempt=st.integers(1, 9),
    at=TIMES,
    claimant=maybe(WORD),
    for_=TEXT,
    rule=WORD,
    lost_gpu_s=AMOUNT,
    gpus=st.integers(0, 99),
    resumed_at=maybe(TIMES),
    resumed_on=maybe(TEXT),
    needs=st.integers(0, 99),
    by=maybe(WORD),
    said=TEXT,
    ended=maybe(TIMES),
    saved_at=maybe(TIMES),
    saved_step=maybe(st.integers(0, 10**9)),
    saved=maybe(st.floats(0, 1)),
    unsaved_gpu_s=maybe(AMOUNT),
    restart_gpu_s=maybe(AMOUNT),
)
RECORDS = st.builds(
    JobRecord,
    id=st.just(ID),
    name=st.text("abc .-", min_size=1, max_size=9),
    project=WORD,
    user=WORD,
    state=st.sampled_from(JobState),
    submitted=TIMES,
    queued_since=TIMES,
    spec=job_specs(),
    key=maybe(WORD),
    attempt=st.integers(0, 9),
    started=maybe(TIMES),
    ended=maybe(TIMES),
    exit_code=maybe(st.integers(0, 255)),
    stop_request=maybe(STOP_REQUESTS),
    note=maybe(NOTES),
    promised=st.lists(PLACES, max_size=2).map(tuple),
    progress=maybe(PROGRESS),
    retried=st.lists(RETRIES, max_size=3).map(tuple),
    remark=TEXT,
    awaits=st.lists(AWAITED, max_size=3).map(tuple),
    freed=maybe(TIMES),
    late_since=maybe(TIMES),
    parameters=PARAMETERS,
    measured=maybe(MEASURED),
)


def records_in(record: type[msgspec.Struct]) -> set[type[Any]]:
    """Return the record types in the fields of a record type, at any depth."""
    found: set[type[Any]] = set()
    kinds = list(get_type_hints(record).values())
    while kinds:
        kind = kinds.pop()
        kinds += get_args(kind)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            found.add(kind)
    return found


def submission_of(job: JobRecord) -> JobSubmission:
    """Return the submission of a job."""
    return JobSubmission(
        entry=ScriptEntry("train.py"),
        name=job.name,
        project=job.project,
        key=job.key,
        parameters=job.parameters,
        **{name: getattr(job.spec, name) for name in JobSpec.__struct_fields__},
    )


def read_back(image: StoredJob, wait: WaitReport = WaitReport()) -> StoredJob:  # noqa: B008 (frozen)
    job = image.job
    spec = as_spec(submission_of(job), job.user, job.name, job.project)
    status = as_status(image, wait, epoch=3, revision=7, generation=2)
    spec = msgspec.json.decode(msgspec.json.encode(spec), type=TrainingJobSpec)
    status = msgspec.json.decode(msgspec.json.encode(status), type=TrainingJobStatus)
    assert (status.epoch, status.revision, status.observed_generation) == (3, 7, 2)
    return stored_job(ID, spec, status, created=0.0)


@given(
    RECORDS,
    st.lists(ATTEMPTS, max_size=3).map(tuple),
    st.lists(PREEMPTIONS, max_size=3).map(tuple),
)
@settings(max_examples=examples(300))
def test_job_record_survives_round_trip(
    job: JobRecord,
    attempts: tuple[AttemptRecord, ...],
    preemptions: tuple[PreemptionRecord, ...],
) -> None:
    image = StoredJob(job, attempts, preemptions)
    assert read_back(image) == image
    wait = WaitReport(Note("pool-full", "Full."), 1.0, 2.0, 3.0, over_quota=True)
    assert read_back(image, wait) == image


def test_example_jobs_cover_every_record_field() -> None:
    """Detect a record field that is missing in the examples and in the status."""
    examples: list[tuple[Any, Any]] = [
        (JobRecord, RECORDS),
        (WorkerRecord, WORKERS),
        (AttemptRecord, ATTEMPTS),
        (PreemptionRecord, PREEMPTIONS),
        (StopIntent, STOP_REQUESTS),
        (Note, NOTES),
        (Place, PLACES),
        (JobProgress, PROGRESS),
        (TrackerRun, RUNS),
        (FailureRecord, FAILURES),
        (RetryRecord, RETRIES),
        (JobMeasurements, MEASURED),
        (Awaited, AWAITED),
    ]
    known = {record for record, _ in examples}
    assert {it for record in known for it in records_in(record)} <= known | {JobSpec}
    for record, strategy in examples:
        made = strategy.wrapped_strategy.kwargs
        assert set(made) == set(record.__struct_fields__), record.__name__


def test_every_field_of_a_submission_is_in_the_spec() -> None:
    assert set(get_type_hints(JobSubmission)) == set(SAME) | HERE


ENTRIES = st.one_of(
    st.builds(ScriptEntry, WORD, st.lists(TEXT, max_size=2)),
    st.builds(ModuleEntry, WORD, st.lists(TEXT, max_size=2)),
    st.builds(CommandEntry, st.lists(TEXT, min_size=1, max_size=3)),
    st.builds(NotebookEntry, st.just("0" * 64), st.just("a.ipynb")),
)
FILES = st.lists(
    st.builds(SnapshotFile, WORD, st.just("1" * 64), st.integers(0, 99), st.booleans()),
    max_size=3,
)


@given(
    ENTRIES,
    FILES,
    st.dictionaries(WORD, TEXT, max_size=2),
    maybe(st.builds(Source, st.just("cells"), maybe(WORD), st.lists(WORD, max_size=2))),
    st.booleans(),
    st.booleans(),
)
def test_submission_survives_round_trip(
    entry: Any,
    files: list[SnapshotFile],
    env: dict[str, str],
    source: Source | None,
    bundled: bool,
    held: bool,
) -> None:
    submission = JobSubmission(
        entry=entry, name="n", project="p", env=env, files=files, source=source,
        working_dir="/w", output_dir="/o", image="registry/image@sha256:1", interpreter="python3",
    )  # fmt: skip
    apart = ("2" * 64 if bundled else None, "3" * 64 if held else None)
    spec = as_spec(submission, "susan", "n", "p", *apart)
    spec = msgspec.json.decode(msgspec.json.encode(spec), type=TrainingJobSpec)
    listed = files_of(bundle_of(files)) if bundled else []
    assert not (held and spec.env)
    assert as_submission(spec, listed, env if held else None) == submission


@given(st.lists(st.integers(0, 1500), min_size=1, max_size=150))
def test_status_is_bounded_and_keeps_newest_attempt(sizes: list[int]) -> None:
    attempts = [
        AttemptRecord(ID, number + 1, 0.0, tuple(WorkerRecord(i, "n", ()) for i in range(size)))
        for number, size in enumerate(sizes)
    ]
    kept = newest_attempts(attempts)
    assert kept == tuple(attempts[-len(kept) :])
    assert len(kept) <= MOST
    assert sum(len(it.workers) for it in kept[:-1]) <= MOST_WORKERS


def test_worker_start_is_runtime_fact_unlike_worker_end() -> None:
    waiting = WorkerRecord(0, "n", ("g",))
    running = msgspec.structs.replace(waiting, started=5.0)
    ended = msgspec.structs.replace(running, ended=6.0, exit_code=0)
    starting = JobRecord(ID, "n", "p", "u", JobState.STARTING, 1.0, 1.0, attempt=1)
    runs = msgspec.structs.replace(starting, state=JobState.RUNNING, started=5.0)

    def image(job: JobRecord, worker: WorkerRecord, started: float | None = None) -> StoredJob:
        return StoredJob(job, (AttemptRecord(ID, 1, 2.0, (worker,), started),))

    before = image(starting, waiting)
    assert without_runtime_facts(image(runs, running, 5.0)) == without_runtime_facts(before)
    assert without_runtime_facts(image(runs, ended, 5.0)) != without_runtime_facts(before)
    stop_request = msgspec.structs.replace(runs, stop_request=StopIntent(Intent.PAUSE, 7.0))
    assert without_runtime_facts(image(stop_request, running, 5.0)) != without_runtime_facts(before)


def test_conditions_follow_job_state_and_show_reason_once() -> None:
    note = Note("pool-full", "All GPUs are in use.")
    waits = JobRecord(ID, "n", "p", "u", JobState.QUEUED, 1.0, 1.0)
    run = AttemptRecord(ID, 1, 2.0, (WorkerRecord(0, "n", ("g",)),))
    ran = msgspec.structs.replace(run, started=3.0, ended=6.0)
    starting = msgspec.structs.replace(waits, state=JobState.STARTING, attempt=1)
    failed = msgspec.structs.replace(starting, state=JobState.FAILED, ended=6.0, note=note)

    def found(image: StoredJob, wait: WaitReport = WaitReport()) -> list[tuple[str, str, str]]:  # noqa: B008
        return [(it.type, it.status, it.message) for it in as_status(image, wait).conditions]

    accepted = ("Accepted", "True", "")
    assert found(StoredJob(waits), WaitReport(note)) == [accepted, ("Admitted", "False", note.text)]
    assert found(StoredJob(starting, (run,))) == [
        accepted,
        ("Admitted", "True", ""),
        ("Running", "False", ""),
    ]
    again = msgspec.structs.replace(waits, attempt=1)
    assert found(StoredJob(again, (ran,)), WaitReport(note))[1:] == [
        ("Admitted", "False", note.text),
        ("Running", "False", ""),
    ]
    assert found(StoredJob(failed, (ran,)))[1:] == [
        ("Admitted", "False", ""),
        ("Running", "False", ""),
        ("Complete", "True", note.text),
    ]
