"""Access requests for projects: users ask, and the leads accept or decline with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchpool_scheduler.contract.access import AccessAsk, AccessDecision
from benchpool_scheduler.errors import Forbidden, InvalidInput, NotFound, Refused
from benchpool_scheduler.hub import HubUser, StaticDirectory
from benchpool_scheduler.service import Pool
from benchpool_support.pools import ADMIN, HUB, JEMMA, JOE, SUSAN, make_pool, opened, sleeper, story
from benchpool_support.scripted import ScriptedRuntime, devices

TEXT = """\
version: 1
projects:
  - {name: research, quota: 3, leads: [jemma]}
  - name: vision   # of susan
    parent: research
    quota: 2
    members: [susan]
    leads: [susan]
  - {name: speech, quota: 1, members: ["group:speech"]}
"""

USERS = tuple(HubUser(name) for name in ("susan", "joe", "jemma"))


def pool_of(folder: Path) -> Pool:
    file = folder / "benchpool.yaml"
    if not file.exists():
        file.write_text(TEXT)
    return make_pool(
        folder,
        configuration=story(file.read_text()),
        runtime=ScriptedRuntime(devices(9)),
        directory=StaticDirectory(USERS),
        configuration_file=file,
    )


async def seen(pool: Pool, caller: object) -> list[tuple[str, str, bool]]:
    found = await pool.access.requests(caller)  # type: ignore[arg-type]
    return [(one.user, one.project, one.decides) for one in found]


async def test_access_request_is_granted_by_lead(
    tmp_path: Path,
) -> None:
    async with opened(pool_of(tmp_path)) as pool:
        with pytest.raises(Refused, match="`benchpool access ask PROJECT`"):
            await pool.jobs.submit(JOE, sleeper())
        await pool.access.ask(JOE, AccessAsk("vision", "for the paper"))
        assert await seen(pool, JOE) == [("joe", "vision", False)]
        assert await seen(pool, SUSAN) == [("joe", "vision", True)]
        assert await seen(pool, JEMMA) == [("joe", "vision", True)]  # leads the parent project
        assert await seen(pool, ADMIN) == [("joe", "vision", True)]
        assert [one.user for one in await pool.access.requests(HUB, "susan")] == ["joe"]
        with pytest.raises(NotFound):
            await pool.access.requests(JOE, "susan")
        with pytest.raises(Forbidden, match="Only the leads of project vision"):
            await pool.access.add(JOE, AccessDecision("vision", "joe"))

    async with opened(pool_of(tmp_path)) as pool:  # a restart keeps access requests
        change = await pool.access.add(SUSAN, AccessDecision("vision", "joe", "welcome"))
        assert change.changes == ["Project vision: joe may use it now."]
        assert await seen(pool, SUSAN) == []
        assert (await pool.jobs.submit(JOE, sleeper())).project == "vision"
        newest = (await pool.configuration.versions.log(ADMIN, 1))[0]
        assert (newest.author, newest.reason) == ("susan", "welcome")
        text = (tmp_path / "benchpool.yaml").read_text()
        assert "members: [susan, joe]" in text
        assert "# of susan" in text
        with pytest.raises(Refused, match="You belong to project vision already"):
            await pool.access.ask(JOE, AccessAsk("vision"))
        gone = await pool.access.remove(SUSAN, AccessDecision("vision", "joe"))
        assert gone.changes == ["Project vision: joe may no longer use it."]


async def test_declined_access_request_shows_reason_and_can_be_repeated(tmp_path: Path) -> None:
    async with opened(pool_of(tmp_path)) as pool:
        await pool.access.ask(JOE, AccessAsk("vision"))
        await pool.access.decline(SUSAN, AccessDecision("vision", "joe", "full until May"))
        assert [one.declined for one in await pool.access.requests(JOE)] == ["full until May"]
        assert await seen(pool, SUSAN) == []
        await pool.access.ask(JOE, AccessAsk("vision", "now?"))
        assert await seen(pool, SUSAN) == [("joe", "vision", True)]


async def test_new_hub_user_is_added_to_project(tmp_path: Path) -> None:
    async with opened(pool_of(tmp_path)) as pool:
        directory = pool.observed.settings.directory
        assert isinstance(directory, StaticDirectory)
        directory.known_users = (*USERS, HubUser("new"))
        await pool.access.add(SUSAN, AccessDecision("vision", "new"))
        settings = pool.observed.now.configuration.project("vision")
        assert settings is not None
        assert "new" in settings.members


async def test_invalid_access_requests_are_refused(tmp_path: Path) -> None:
    async with opened(pool_of(tmp_path)) as pool:
        with pytest.raises(InvalidInput, match=r"no project 'visoin'; did you mean `vision`\?"):
            await pool.access.ask(JOE, AccessAsk("visoin"))
        with pytest.raises(
            InvalidInput, match=r"only groups others and has no members; .*: vision"
        ):
            await pool.access.ask(JOE, AccessAsk("research"))
        with pytest.raises(InvalidInput, match=r"knows no user 'jo'; did you mean `joe`"):
            await pool.access.add(SUSAN, AccessDecision("vision", "jo"))
        groups = (HubUser("kim", groups={"speech": None}),)
        pool.observed.put(pool.observed.now.with_users((*USERS, *groups)))
        with pytest.raises(InvalidInput, match="removes members by group from the group"):
            await pool.access.remove(ADMIN, AccessDecision("speech", "kim"))
        with pytest.raises(NotFound, match="joe has no access request"):
            await pool.access.decline(SUSAN, AccessDecision("vision", "joe"))
