"""Lists of many jobs are read in pages and searched by words."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from benchpool_scheduler.contract import Source
from benchpool_scheduler.errors import Forbidden, InvalidInput
from benchpool_support.pools import ADMIN, JOE, SUSAN, make_pool, opened, sleeper
from benchpool_support.scripted import ScriptedRuntime, devices


async def test_self_test_job_is_restricted_and_hidden(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        test = replace(
            sleeper(),
            project="susan",
            tags=("self-test",),
            source=Source(kind="self-test"),
            time_limit_s=30,
        )
        for sent in (test, replace(test, source=None), replace(test, tags=())):
            with pytest.raises(Forbidden, match="reserved for the job with which"):
                await pool.jobs.submit(SUSAN, sent)
        for sent in (replace(test, gpus=2), replace(test, workers=2)):
            with pytest.raises(InvalidInput, match="this one asks for 2 GPUs and 30 s"):
                await pool.jobs.submit(ADMIN, sent)
        for seconds in (None, 31):
            with pytest.raises(InvalidInput, match="a time limit of at most 30 s"):
                await pool.jobs.submit(ADMIN, replace(test, time_limit_s=seconds))
        taken = await pool.jobs.submit(ADMIN, test)
        assert pool.jobs.select(ADMIN, all=True) == []
        assert [job.id for job in pool.jobs.select(ADMIN, all=True, tag="self-test")] == [taken.id]
        assert pool.jobs.detail(ADMIN, taken.id[:8]).job.id == taken.id


async def test_job_list_is_paged_and_searchable(
    tmp_path: Path,
) -> None:
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        sent = [
            (await pool.jobs.submit(SUSAN, replace(sleeper(gpus=6), name=f"sweep-{number}"))).id
            for number in range(25)
        ]
        tagged = await pool.jobs.submit(JOE, replace(sleeper(), name="Base", tags=("Paper",)))
        select = pool.jobs.select
        parts = [select(SUSAN, offset=offset, limit=10) for offset in (0, 10, 20, 30)]
        assert [job.id for part in parts for job in part] == sent[::-1]
        assert [len(part) for part in parts] == [10, 10, 5, 0]

        def found(text: str) -> set[str]:
            return {job.name for job in select(ADMIN, all=True, search=text)}

        assert found("SWEEP-2") == {"sweep-2", *(f"sweep-2{digit}" for digit in range(5))}
        assert found("joe paper") == found("base") == found(tagged.id[:8]) == {"Base"}
        assert found("susan paper") == set()
        assert select(SUSAN, search="base") == []

        await pool.jobs.act(SUSAN, sent[-1], "cancel")
        for whose, reader, expected in (
            ("susan", ADMIN, sent[::-1]),
            ("joe", ADMIN, [tagged.id]),
            ("susan", SUSAN, sent[::-1]),
            ("joe", SUSAN, []),
            ("nobody", ADMIN, []),
        ):
            assert [job.id for job in select(reader, user=whose)] == expected
        live = [job.id for job in select(ADMIN, user="susan", live=True)]
        assert sorted(live) == sorted(sent[:-1])

        named = {job.id: job.reason.code for job in select(ADMIN, all=True) if job.reason}
        assert named[sent[-1]] == "cancelled-by-user"
        for code in {*named.values(), "fragmented"}:
            listed = {job.id for job in select(ADMIN, all=True, reason=code)}
            assert listed == {id_ for id_, its in named.items() if its == code}
