"""A new configuration applies immediately, and completely or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchpool_scheduler.contract import State
from benchpool_scheduler.contract.configuration import ConfigurationEdit, Setting
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.hub import HubUser, StaticDirectory
from benchpool_support.pools import (
    ADMIN,
    JOE,
    STORY,
    SUSAN,
    decided,
    make_pool,
    opened,
    reached,
    sleeper,
    story,
)
from benchpool_support.scripted import ScriptedRuntime, devices


async def test_raised_limit_starts_queued_jobs_and_is_saved(tmp_path: Path) -> None:
    limited = STORY.replace("quota: 2, members: [susan]", "quota: 2, limit: 2, members: [susan]")
    file = tmp_path / "benchpool.yaml"
    pool = make_pool(
        tmp_path,
        configuration=story(limited),
        runtime=ScriptedRuntime(devices(9)),
        configuration_file=file,
    )
    async with opened(pool):
        first = await pool.jobs.submit(SUSAN, sleeper(gpus=2))
        await reached(pool, first.id, State.RUNNING)
        second = await pool.jobs.submit(SUSAN, sleeper())
        waits = await decided(pool, second.id)
        assert waits.reason is not None
        assert waits.reason.code == "project-limit"
        looked = pool.configuration.check(ADMIN, STORY)
        assert (looked.applied, looked.changes) == (
            False,
            ["Project susan (susan): limit 2 → not set."],
        )
        assert not file.exists()
        assert (await pool.configuration.apply(ADMIN, STORY)).applied
        await reached(pool, second.id, State.RUNNING)
        assert file.read_text() == STORY


async def test_configuration_error_keeps_old_configuration(tmp_path: Path) -> None:
    file = tmp_path / "benchpool.yaml"
    file.write_text("version: 1\nprojcts: []\n")
    pool = make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)), configuration_file=file)
    async with opened(pool):
        with pytest.raises(InvalidInput, match=r"benchpool.yaml, line 2: projcts"):
            await pool.configuration.reload()
        with pytest.raises(InvalidInput, match="add up to 10 GPUs and the pool has 9"):
            await pool.configuration.apply(ADMIN, "{version: 1, build: {users: {a: 5, b: 5}}}")
        assert (await pool.jobs.submit(SUSAN, sleeper())).project == "susan"
        file.write_text(STORY.replace("{susan: 1, joe: 1", "{susan: 2, joe: 1"))
        changed = await pool.configuration.reload()
        assert changed.changes == ["Build quota of user susan: 1 → 2 GPUs."]
        assert pool.views.quota(SUSAN).build.quota == 2


async def test_oversubscribed_guarantees_need_explicit_setting(
    tmp_path: Path,
) -> None:
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        more = STORY.replace("{name: research, quota: 6}", "{name: research, quota: 60}")
        with pytest.raises(InvalidInput) as refused:
            await pool.configuration.apply(ADMIN, more)
        assert refused.value.message == (
            "benchpool.yaml, line 5: the projects are guaranteed 60 GPUs together (research 60) "
            "and training has 6 GPUs; lower a quota, or set policy.oversubscribe to true."
        )
        assert (refused.value.code, refused.value.field) == (
            "guarantees-oversubscribed",
            "projects",
        )
        with pytest.raises(InvalidInput, match="guaranteed 7 GPUs together"):
            pool.configuration.check(ADMIN, STORY.replace("quota: 6", "quota: 7"))
        edit = [Setting("projects.research.quota", 7)]
        with pytest.raises(InvalidInput, match="guaranteed 7 GPUs together"):
            await pool.configuration.set(ADMIN, ConfigurationEdit(edit))
        meant = more.replace("grace_s: 20", "grace_s: 20, oversubscribe: true")
        changed = await pool.configuration.apply(ADMIN, meant)
        assert "Projects may be promised more GPUs than exist: yes." in changed.changes
        with pytest.raises(InvalidInput, match="guaranteed 60 GPUs together"):
            await pool.configuration.apply(ADMIN, more)


async def test_excess_guarantees_are_reported_and_allow_other_changes(
    tmp_path: Path,
) -> None:
    alone = STORY.replace("build: {users: {susan: 1, joe: 1, jemma: 1}}\n", "")
    pool = make_pool(tmp_path, configuration=story(alone), runtime=ScriptedRuntime(devices(4)))
    async with opened(pool):
        await pool.housekeeping.ask_hub()
        assert "guaranteed 6 GPUs together (research 6) and training has 4 GPUs" in str(
            pool.views.status(ADMIN).health.problems
        )
        await pool.configuration.apply(ADMIN, alone.replace("grace_s: 20", "grace_s: 30"))
        with pytest.raises(InvalidInput, match="guaranteed 7 GPUs"):
            await pool.configuration.apply(ADMIN, alone.replace("quota: 6", "quota: 7"))
        lower = alone.replace("quota: 6", "quota: 4")
        await pool.configuration.apply(ADMIN, lower)
        await pool.housekeeping.ask_hub()
        assert pool.views.status(ADMIN).health.ok


async def test_excess_bench_quotas_stop_start_of_empty_pool_only(
    tmp_path: Path,
) -> None:
    pool = make_pool(tmp_path, runtime=ScriptedRuntime(devices(2)))
    with pytest.raises(InvalidInput, match="add up to 3 GPUs and the pool has 2"):
        await pool.open()
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        await pool.jobs.submit(SUSAN, sleeper())
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(2)))) as pool:
        assert "add up to 3 GPUs" in pool.views.status(SUSAN).health.problems[0]


async def test_default_quota_reserves_bench_for_every_hub_user(tmp_path: Path) -> None:
    directory = StaticDirectory((HubUser("ann"), HubUser("ben"), HubUser("eve")))
    pool = make_pool(
        tmp_path,
        configuration=story("{version: 1, build: {default: 1}}"),
        runtime=ScriptedRuntime(devices(9)),
        directory=directory,
    )
    async with opened(pool):
        assert "3 kept free for benches, 6 free" in pool.views.status(ADMIN).text
        directory.known_users += (HubUser("zoe"),)
        await pool.housekeeping.ask_hub()
        assert "4 kept free for benches, 5 free" in pool.views.status(ADMIN).text


@pytest.mark.parametrize(
    "change",
    [
        ("{name: susan, parent", "{name: s2, parent"),
        ("policy:", "  - {name: below, parent: susan}\npolicy:"),
    ],
    ids=["it is gone", "it was divided"],
)
async def test_jobs_of_removed_project_keep_running_but_never_start(
    tmp_path: Path, change: tuple[str, str]
) -> None:
    runtime = ScriptedRuntime(devices(9))
    async with opened(make_pool(tmp_path, runtime=runtime)) as pool:
        running = await pool.jobs.submit(SUSAN, sleeper(gpus=6))
        await reached(pool, running.id, State.RUNNING)
        waiting = await pool.jobs.submit(SUSAN, sleeper())
        text = STORY.replace(*change)
        changed = await pool.configuration.apply(ADMIN, text)
        assert any("2 of its jobs have not ended" in line for line in changed.warnings)
        claimant = await pool.jobs.submit(JOE, sleeper(gpus=2))
        await reached(pool, running.id, State.PAUSING)
        for worker in list(runtime.alive):
            runtime.end(worker, 143)
        await reached(pool, claimant.id, State.RUNNING)
        found = await decided(pool, waiting.id)
        assert found.reason is not None
        assert found.reason.code == "project-limit"


@pytest.mark.parametrize(("before", "after"), [(0o600, 0o600), (0o640, 0o640), (None, 0o600)])
async def test_configuration_file_keeps_its_permissions(
    tmp_path: Path, before: int | None, after: int
) -> None:
    file = tmp_path / "benchpool.yaml"
    if before is not None:
        file.write_text(STORY)
        file.chmod(before)
    pool = make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)), configuration_file=file)
    async with opened(pool):
        await pool.configuration.apply(ADMIN, STORY)
    assert (file.read_text(), file.stat().st_mode & 0o777) == (STORY, after)
