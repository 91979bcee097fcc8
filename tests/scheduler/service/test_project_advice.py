"""Reasons why a project takes no job or no member, and the remedies."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from benchpool_scheduler.contract.access import AccessAsk, AccessDecision
from benchpool_scheduler.contract.configuration import ConfigurationEdit, Setting
from benchpool_scheduler.errors import Forbidden, InvalidInput
from benchpool_scheduler.hub import HubUser, StaticDirectory
from benchpool_scheduler.service import Caller, Pool
from benchpool_support.pools import ADMIN, JEMMA, JOE, SUSAN, make_pool, opened, sleeper, story
from benchpool_support.scripted import ScriptedRuntime, devices

TEXT = """\
version: 1
projects:
  - {name: lab, leads: [jemma]}
  - {name: vision, parent: lab}
  - {name: images, parent: vision, quota: 2, members: [susan], leads: [jemma]}
  - {name: speech, parent: vision, quota: 2, members: [joe]}
  - {name: people, members: ["*"], personal_projects: {quota: 0}}
"""
KIM = Caller("kim")
USERS = tuple(map(HubUser, ("susan", "joe", "jemma", "kim")))


@pytest.fixture
async def pool(tmp_path: Path) -> AsyncIterator[Pool]:
    file = tmp_path / "benchpool.yaml"
    file.write_text(TEXT)
    made = make_pool(
        tmp_path,
        configuration=story(TEXT),
        runtime=ScriptedRuntime(devices(9)),
        directory=StaticDirectory(USERS),
        configuration_file=file,
    )
    async with opened(made) as pool:
        yield pool


@pytest.mark.parametrize(
    ("who", "words", "named"),
    [
        (SUSAN, "send the job to one of your projects below it: images.", ["images"]),
        (JEMMA, "send the job to one of your projects below it: images.", ["images"]),
        (ADMIN, "send the job to one of them: images, speech.", ["images", "speech"]),
    ],
)
async def test_group_refusal_names_usable_projects(
    pool: Pool, who: Caller, words: str, named: list[str]
) -> None:
    """Groups below are not named, and a member's advice names only projects of the member."""
    for group in ("lab", "vision"):
        with pytest.raises(InvalidInput) as refused:
            await pool.jobs.submit(who, sleeper(project=group))
        assert refused.value.message == f"Project {group} only groups others; {words}"
    for project in named:
        assert (await pool.jobs.submit(who, sleeper(project=project))).project == project


async def test_group_refusal_advises_access_request(pool: Pool) -> None:
    with pytest.raises(InvalidInput) as refused:
        await pool.jobs.submit(KIM, sleeper(project="lab"))
    assert refused.value.message == (
        "Project lab only groups others; you belong to none of them (images, speech). Request "
        "access with `benchpool access ask PROJECT` or on the pool's page."
    )
    with pytest.raises(InvalidInput, match=r"name one of them: images, speech\."):
        await pool.access.ask(KIM, AccessAsk("lab"))
    for project in ("images", "speech"):
        await pool.access.ask(KIM, AccessAsk(project))
    await pool.access.add(JEMMA, AccessDecision("images", "kim"))
    assert (await pool.jobs.submit(KIM, sleeper(project="images"))).project == "images"


async def test_personal_project_is_not_advised_to_other_users(pool: Pool) -> None:
    assert (await pool.jobs.submit(KIM, sleeper())).project == "kim"
    with pytest.raises(Forbidden) as refused:
        await pool.jobs.submit(JOE, sleeper(project="kim"))
    assert refused.value.message == (
        "You are not a member of project kim; yours: speech. It belongs to kim alone: name one of "
        "yours, or none."
    )
    assert (await pool.jobs.submit(JOE, sleeper())).project == "speech"
    with pytest.raises(InvalidInput, match=r"made for kim alone\. Name people, which makes one"):
        await pool.access.ask(JOE, AccessAsk("kim"))
    with pytest.raises(InvalidInput, match=r"Request one with `benchpool access ask people`"):
        await pool.jobs.submit(JOE, sleeper(project="people"))
    await pool.access.ask(JOE, AccessAsk("people"))
    await pool.access.add(ADMIN, AccessDecision("people", "joe"))
    assert (await pool.jobs.submit(JOE, sleeper(project="joe"))).project == "joe"


async def test_removing_nonmember_lead_advises_config_change(pool: Pool) -> None:
    with pytest.raises(InvalidInput) as refused:
        await pool.access.remove(ADMIN, AccessDecision("images", "jemma"))
    assert refused.value.message == (
        "jemma is not a member of project images by name: jemma leads it. An administrator ends "
        "this with `benchpool config set projects.images.leads-=jemma`."
    )
    await pool.configuration.set(
        ADMIN, ConfigurationEdit([Setting("projects.images.leads", remove=["jemma"])])
    )
    settings = pool.observed.now.configuration.project("images")
    assert settings is not None
    assert settings.leads == ()


TREE = """\
version: 1
projects:
  - {name: lab}
  - {name: vision, parent: lab, leads: [liz]}
  - {name: images, parent: vision, quota: 2, members: [susan]}
  - {name: speech, parent: lab, quota: 2, members: [joe]}
  - {name: town}
  - {name: people, parent: town, members: [kim], personal_projects: {quota: 0}}
"""


@pytest.fixture
async def tree(tmp_path: Path) -> AsyncIterator[Pool]:
    made = make_pool(
        tmp_path,
        configuration=story(TREE),
        runtime=ScriptedRuntime(devices(4)),
        directory=StaticDirectory(USERS),
    )
    async with opened(made) as pool:
        yield pool


async def test_group_refusal_names_projects_below_lead(tree: Pool) -> None:
    liz = Caller("liz")
    with pytest.raises(InvalidInput, match=r"send the job to one of them: images\.$"):
        await tree.jobs.submit(liz, sleeper(project="lab"))
    assert (await tree.jobs.submit(liz, sleeper(project="images"))).project == "images"


async def test_group_refusal_names_personal_project_template(tree: Pool) -> None:
    with pytest.raises(InvalidInput, match=r"you belong to none of them \(people\)\. Request"):
        await tree.jobs.submit(JOE, sleeper(project="town"))
    with pytest.raises(InvalidInput, match=r"name one of them: people\."):
        await tree.access.ask(JOE, AccessAsk("town"))
    await tree.access.ask(JOE, AccessAsk("people"))
    with pytest.raises(InvalidInput, match=r"you belong to none of them \(people\)"):
        await tree.jobs.submit(ADMIN, sleeper(project="town"))  # this project takes no job itself


async def test_advice_to_user_without_project_is_access_request(tree: Pool) -> None:
    with pytest.raises(Forbidden, match=r"belongs to kim alone: request access to one with"):
        await tree.jobs.submit(Caller("liz"), sleeper(project="kim"))
    with pytest.raises(Forbidden, match=r"belongs to kim alone: name one of yours, or none\.$"):
        await tree.jobs.submit(JOE, sleeper(project="kim"))
