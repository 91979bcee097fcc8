"""Invisible or misleading characters are refused in names and escaped in other texts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from benchpool_scheduler.contract import (
    ENDED,
    JobSubmission,
    NotebookEntry,
    ScriptEntry,
    SnapshotFile,
    Source,
    State,
)
from benchpool_scheduler.contract.actions import ActionReason, JobRename
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.runtime import EndedBy, WorkerProgress
from benchpool_scheduler.service import Pool
from benchpool_scheduler.service.jobs.submission_checks import check_shape
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import SUSAN, make_pool, opened, reached, sleeper, until_job
from benchpool_support.scripted import ScriptedRuntime, devices

DECEPTIVE = ["\u202efdp.exe", "a\u200bb", "\x1b[31mred", "a\x85b", "\u2066x", "\ufeffx", "a\u2028b"]


@pytest.fixture
def runtime() -> ScriptedRuntime:
    return ScriptedRuntime(devices(9))


@pytest.fixture
async def pool(tmp_path: Path, runtime: ScriptedRuntime) -> AsyncIterator[Pool]:
    async with opened(make_pool(tmp_path, runtime=runtime, clock=FakeClock())) as pool:
        yield pool


@pytest.mark.parametrize("text", DECEPTIVE)
async def test_deceptive_characters_in_names_and_tags_are_refused(pool: Pool, text: str) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper(name="Träume 🚀"))
    assert job.name == "Träume 🚀"
    for sent in (sleeper(name=text), sleeper(tags=(text,))):
        with pytest.raises(InvalidInput, match="invisible or control characters") as refused:
            await pool.jobs.submit(SUSAN, sent)
        assert text not in refused.value.message
    with pytest.raises(InvalidInput, match="invisible or control characters"):
        await pool.jobs.act(SUSAN, job.id, "rename", JobRename(text))
    assert pool.jobs.detail(SUSAN, job.id).job.name == "Träume 🚀"


def in_paths(text: str) -> list[tuple[str, JobSubmission]]:
    """Return submissions with a text in each path, with the name of the field."""
    file = SnapshotFile(f"data/{text}.csv", "0" * 64, 1)
    script = SnapshotFile(f"{text}.py", "0" * 64, 1)
    return [
        ("files", sleeper(files=[file])),
        ("entry", replace(sleeper(files=[script]), entry=ScriptEntry(f"{text}.py"))),
        ("entry", replace(sleeper(), entry=NotebookEntry("0" * 64, f"{text}.ipynb"))),
        ("source", sleeper(source=Source("notebook", path=f"{text}.ipynb"))),
        ("working_dir", sleeper(working_dir=f"/data/{text}")),
        ("output_dir", sleeper(output_dir=f"/data/{text}")),
        ("interpreter", sleeper(interpreter=f"python{text}")),
    ]


@pytest.mark.parametrize("text", DECEPTIVE)
async def test_deceptive_characters_in_variables_are_refused(pool: Pool, text: str) -> None:
    with pytest.raises(InvalidInput, match="invisible or control characters") as refused:
        await pool.jobs.submit(SUSAN, sleeper(env={"DATA": f"/data/{text}"}))
    assert refused.value.field == "env"
    assert text not in refused.value.message


@pytest.mark.parametrize("text", ["\x1b[31mred", "a\x85b", "a\nb"])
async def test_control_characters_in_paths_are_refused(pool: Pool, text: str) -> None:
    for field, sent in in_paths(text):
        with pytest.raises(InvalidInput, match="contains a control character") as refused:
            await pool.jobs.submit(SUSAN, sent)
        assert refused.value.field == field
        assert text not in refused.value.message


@pytest.mark.parametrize(
    "text", ["at 9.41\u202fPM", "v\xa013", "\U0001f469\u200d\U0001f4bb", "soft\xadhyphen", "a\\b"]
)
def test_unusual_characters_in_paths_are_accepted(text: str) -> None:
    for _, sent in in_paths(text):
        check_shape(sent)


async def test_multiline_variable_is_accepted(pool: Pool) -> None:
    await pool.jobs.submit(SUSAN, sleeper(env={"SCRIPT": "if true:\r\n\tpass\n", "NAME": "Träume"}))


async def test_deceptive_characters_in_reasons_and_progress_are_escaped(
    pool: Pool, runtime: ScriptedRuntime
) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper())
    (worker,) = await runtime.until_launched(1)
    await reached(pool, job.id, State.RUNNING)
    runtime.report(WorkerProgress(worker, 0.0, 0.5, "step\u202e5\x1b[2J"))
    reported = await until_job(pool, job.id, lambda now: now.progress is not None)
    assert reported.progress is not None
    assert reported.progress.text == "step\\u202e5\\x1b[2J"
    await pool.jobs.act(SUSAN, job.id, "cancel", ActionReason("not\u200b needed"))
    (_, notice), *_ = await runtime.until_noticed(1)
    assert notice.text == "Cancelled by susan: not\\u200b needed."


@pytest.mark.parametrize("by", [EndedBy.ITSELF, EndedBy.LOST, EndedBy.NOT_TAKEN])
async def test_deceptive_characters_in_end_reason_are_escaped(
    pool: Pool, runtime: ScriptedRuntime, by: EndedBy
) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper())
    (worker,) = await runtime.until_launched(1)
    await reached(pool, job.id, State.RUNNING)
    runtime.end(worker, 1, by, text="it failed with ValueError: a\u202eb\x1b[2J")
    await until_job(pool, job.id, lambda now: now.attempt > 1 or now.state in ENDED)
    attempt = pool.ledger.attempt(job.id, 1)
    assert attempt is not None
    assert attempt.workers[0].text == "it failed with ValueError: a\\u202eb\\x1b[2J"
    ended = pool.jobs.detail(SUSAN, job.id).job.reason
    if by is EndedBy.ITSELF:
        assert ended is not None
        assert ended.text == "sleep failed with ValueError: a\\u202eb\\x1b[2J."
