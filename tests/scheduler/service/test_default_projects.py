"""Projects for users without one: by group, one for all users, or a personal project for each."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from benchpool_scheduler.contract import State
from benchpool_scheduler.errors import BenchpoolError, Forbidden, InvalidInput, Refused
from benchpool_scheduler.hub import HubUser, StaticDirectory
from benchpool_scheduler.service import Caller, Pool
from benchpool_support.pools import (
    ADMIN,
    JOE,
    SUSAN,
    decided,
    make_pool,
    opened,
    reached,
    sleeper,
    story,
)
from benchpool_support.scripted import ScriptedRuntime, devices

WILDCARD = """
version: 1
projects:
  - {name: vision, quota: 3, members: [susan]}
  - {name: guests, limit: 2, members: ["*"]}
"""

PERSONAL = """
version: 1
projects:
  - {name: vision, quota: 3, members: [susan]}
  - {name: joe, quota: 0, members: [jemma]}
  - name: people
    quota: 2
    leads: [susan]
    members: ["*", "group:staff"]
    personal_projects: {quota: 1, limit: 2}
"""

STAFF = Caller("sue", groups=frozenset({"staff"}))


def pool_of(tmp_path: Path, text: str, directory: StaticDirectory | None = None) -> Pool:
    runtime = ScriptedRuntime(devices(9))
    return make_pool(tmp_path, configuration=story(text), runtime=runtime, directory=directory)


def projects(pool: Pool, caller: Caller) -> list[str]:
    return [one.name for one in pool.views.quota(caller).projects]


async def test_wildcard_project_takes_users_without_project(tmp_path: Path) -> None:
    async with opened(pool_of(tmp_path, WILDCARD)) as pool:
        assert (projects(pool, SUSAN), projects(pool, JOE)) == (["vision"], ["guests"])
        assert (await pool.jobs.submit(SUSAN, sleeper())).project == "vision"
        assert (await pool.jobs.submit(JOE, sleeper())).project == "guests"
        with pytest.raises(Forbidden, match="not a member of project guests; yours: vision"):
            await pool.jobs.submit(SUSAN, replace(sleeper(), project="guests"))


async def test_personal_project_enforces_its_own_limit(
    tmp_path: Path,
) -> None:
    async with opened(pool_of(tmp_path, PERSONAL)) as pool:
        assert projects(pool, STAFF) == ["sue"]
        assert projects(pool, JOE) == ["people-joe"]  # the name "joe" belongs to another project
        assert projects(pool, SUSAN) == ["vision"]
        sent = [await pool.jobs.submit(STAFF, sleeper()) for _ in range(3)]
        assert [job.project for job in sent] == ["sue"] * 3
        for job in sent[:2]:
            await reached(pool, job.id, State.STARTING, State.RUNNING)
        await decided(pool, sent[2].id)
        why = pool.jobs.why(STAFF, sent[2].id)
        assert why.reason is not None
        assert why.reason.code == "project-limit"
        # Leads of the parent project lead it; the parent holds no jobs itself.
        assert [job.id for job in pool.jobs.select(SUSAN, project="sue", all=True)] == [
            job.id for job in sent[::-1]
        ]
        with pytest.raises(InvalidInput, match="people only groups others"):
            await pool.jobs.submit(STAFF, replace(sleeper(), project="people"))


async def test_personal_projects_inherit_gpu_hour_budget(
    tmp_path: Path,
) -> None:
    written = PERSONAL.replace("limit: 2}", "limit: 2, gpu_hours: {hard: 0}}")
    async with opened(pool_of(tmp_path, written)) as pool:
        with pytest.raises(Refused, match="sue") as refused:
            await pool.jobs.submit(STAFF, sleeper())
    assert refused.value.code == "gpu-hours"


async def test_personal_project_disappears_when_user_leaves(
    tmp_path: Path,
) -> None:
    directory = StaticDirectory((HubUser("sue", groups={"staff": None}), HubUser("jemma")))
    async with opened(pool_of(tmp_path, PERSONAL, directory)) as pool:
        assert projects(pool, STAFF) == ["sue"]
        await pool.jobs.submit(STAFF, sleeper())
        same = pool.configuration.check(ADMIN, PERSONAL)
        assert (same.changes, same.warnings) == ([], [])
        change = pool.configuration.check(ADMIN, PERSONAL.replace("limit: 2", "limit: 3"))
        assert change.changes == [
            "Project people (*, group:staff): a personal project for each member (quota 1, "
            "limit 2, weight 1) → a personal project for each member (quota 1, limit 3, weight 1)."
        ]
        directory.known_users = (HubUser("jemma"),)
        await pool.observed.ask_hub()
        names = [one.name for one in pool.views.status(ADMIN).projects]
        assert names == ["vision", "joe", "people"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "{name: a, personal_projects: {limit: 1}}",
            "line 2: projects[0].personal_projects needs `members`",
        ),
        ("{name: a, leads: ['*']}", "only `members` may include all users"),
        ("{name: a, members: [b], personal_projects: {quotta: 1}}", "did you mean `quota`?"),
    ],
)
def test_wrong_personal_project_settings_are_rejected(text: str, sentence: str) -> None:
    with pytest.raises(BenchpoolError) as refused:
        story(f"version: 1\nprojects: [{text}]")
    assert sentence in refused.value.message


async def test_submission_without_any_project_is_refused(tmp_path: Path) -> None:
    async with opened(pool_of(tmp_path, "version: 1")) as pool:
        with pytest.raises(Refused, match="susan belongs to no project"):
            await pool.jobs.submit(SUSAN, sleeper())
