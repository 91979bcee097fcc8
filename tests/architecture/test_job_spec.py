"""A job's request is one ``JobSpec``: each of its fields is present wherever a job is described.

The fields are read from the class, so that a new field is checked too.
"""

from __future__ import annotations

import asyncio
import dataclasses
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchpool import keywords, magic
from benchpool.drafts import JobOptions
from benchpool.server.requests import SendRequest
from benchpool_scheduler.cli.verb import submit_option
from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_scheduler.contract.options import OPTIONS, fields_of, words_of, written
from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.core.model import JobFacts
from benchpool_scheduler.resources.jobs import MAY_CHANGE, TrainingJobSpec
from benchpool_scheduler.resources.submissions import as_spec, as_submission, asked_in
from benchpool_scheduler.service.cluster_state.snapshots import candidate
from benchpool_scheduler.service.observed.observations import Observations
from benchpool_scheduler.store.records import AddJob, JobRecord, StoredContents
from benchpool_scheduler.store.sqlite import SqliteStore
from benchpool_support.examples import examples
from benchpool_support.job_specs import fields, job_specs

NAMES = JobSpec.__struct_fields__
ENTRY = CommandEntry(["train"])
slow = settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
each_field = pytest.mark.parametrize("name", NAMES)


def submission(spec: JobSpec) -> JobSubmission:
    return JobSubmission(ENTRY, **msgspec.structs.asdict(spec))


def record(spec: JobSpec, id_: str = "a" * 26) -> JobRecord:
    return JobRecord(id_, "train", "vision", "susan", JobState.QUEUED, 1.0, 1.0, spec)


GANG = JobSpec(workers=1000)
"""Spec whose minimum gang size may be any drawn value."""


def one_other(name: str) -> st.SearchStrategy[JobSpec]:
    """Return a strategy for specs that differ from ``GANG`` in this field only."""
    other = fields()[name].filter(lambda value: value != getattr(GANG, name))
    return other.map(lambda value: GANG.changed(**{name: value}))


# --------------------------------------------------------------------------- HTTP bodies


@each_field
@given(data=st.data())
@slow
def test_each_field_is_key_of_body(name: str, data: st.DataObject) -> None:
    spec = data.draw(one_other(name))
    body = msgspec.json.encode(submission(spec))
    value = getattr(spec, name)
    sent = msgspec.json.decode(body)[name]
    assert sent == msgspec.json.decode(msgspec.json.encode(value))
    assert msgspec.json.decode(body, type=JobSubmission).spec == spec


@given(job_specs())
@slow
def test_body_round_trips(spec: JobSpec) -> None:
    body = msgspec.json.encode(submission(spec))
    assert msgspec.json.decode(body, type=JobSubmission).spec == spec


def test_body_with_unknown_key_is_rejected() -> None:
    body = msgspec.json.encode(msgspec.to_builtins(submission(JobSpec())) | {"gpu": 2})
    with pytest.raises(msgspec.ValidationError, match="gpu"):
        msgspec.json.decode(body, type=JobSubmission)


def test_dialog_request_includes_whole_spec() -> None:
    assert issubclass(SendRequest, JobSpec)
    assert issubclass(JobSubmission, JobSpec)


# --------------------------------------------------------------------------- record and core


@pytest.mark.parametrize("holder", [JobRecord, JobFacts, JobOptions], ids=lambda it: it.__name__)
def test_holder_repeats_no_spec_fields(holder: type[Any]) -> None:
    own = (
        {it.name: it.type for it in dataclasses.fields(holder)}
        if dataclasses.is_dataclass(holder)
        else {it.name: it.type for it in msgspec.structs.fields(holder)}
    )
    assert own["spec"] in (JobSpec, "JobSpec")
    assert not own.keys() & set(NAMES)


@each_field
@given(data=st.data())
@settings(max_examples=examples(3), deadline=None)
def test_store_returns_each_field(
    name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    kept = [record(data.draw(one_other(name)))]
    found = asyncio.run(stored(tmp_path_factory.mktemp("state"), kept))
    assert list(found.jobs) == kept


async def stored(folder: Path, kept: Sequence[JobRecord]) -> StoredContents:
    """Return the contents of a store that is closed and reopened with these jobs."""
    store = SqliteStore(folder)
    await store.open()
    await store.commit(*(AddJob(it, msgspec.json.encode(submission(it.spec))) for it in kept))
    await store.close()
    again = SqliteStore(folder)
    found = await again.open()
    await again.close()
    return found


@given(job_specs())
@slow
def test_record_round_trips(spec: JobSpec) -> None:
    kept = record(spec)
    assert msgspec.json.decode(msgspec.json.encode(kept), type=JobRecord) == kept


@given(job_specs())
@slow
def test_core_job_shares_spec_of_record(spec: JobSpec) -> None:
    kept = record(spec)
    assert candidate(kept, Observations.of(Configuration())).spec is kept.spec


# --------------------------------------------------------------------------- on Kubernetes


@each_field
@given(data=st.data())
@slow
def test_training_job_includes_each_field(name: str, data: st.DataObject) -> None:
    spec = data.draw(one_other(name))
    encoded = msgspec.json.encode(as_spec(submission(spec), "susan", "train", "vision"))
    usual = msgspec.json.encode(as_spec(submission(GANG), "susan", "train", "vision"))
    assert encoded != usual
    read = msgspec.json.decode(encoded, type=TrainingJobSpec)
    assert asked_in(read) == spec
    assert as_submission(read, ()).spec == spec


def test_changeable_fields_exist_in_training_job() -> None:
    assert {"workers", "priority"} <= MAY_CHANGE
    assert set(TrainingJobSpec.__struct_encode_fields__) >= MAY_CHANGE


# --------------------------------------------------------------------------- options of submit


@each_field
def test_each_field_has_one_option(name: str) -> None:
    assert [option.field for option in OPTIONS].count(name) == 1


def by_click(words: list[str]) -> dict[str, Any]:
    command = click.Command("submit", params=[submit_option(option) for option in OPTIONS])
    return command.make_context("submit", list(words)).params


@given(job_specs())
@slow
def test_cli_and_magic_parse_same_words(spec: JobSpec) -> None:
    words = words_of(submission(spec), {})
    assert JobSubmission(ENTRY, **fields_of(written(by_click(words), {}))).spec == spec
    assert magic.read_options(shlex.join(words)).spec == spec


@given(job_specs())
@slow
def test_python_takes_each_field_by_keyword(spec: JobSpec) -> None:
    by_keyword = {option.name: getattr(submission(spec), option.field) for option in OPTIONS}
    assert JobOptions.of(fields_of(by_keyword), key="k").spec == spec
    assert by_keyword.keys() == keywords.NAMES
