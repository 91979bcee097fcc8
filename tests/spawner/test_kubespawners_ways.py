"""What hooks and tests written for KubeSpawner rely on holds for ours."""

from __future__ import annotations

import asyncio
import logging
from typing import Any
from unittest.mock import Mock

import pytest
from kubespawner import KubeSpawner
from tornado.web import HTTPError

from benchpool_spawner.kube import BenchpoolKubeSpawner
from benchpool_spawner.refusal import StartRefused

pytestmark = pytest.mark.usefixtures("kubeconfig")

PROFILES: list[dict[str, Any]] = [
    {
        "display_name": "Small",
        "slug": "small",
        "default": True,
        "profile_options": {
            "image": {
                "choices": {"a": {"kubespawner_override": {"image": "site/a"}}},
                "unlisted_choice": {
                    "enabled": True,
                    "validation_regex": "^site/.*$",
                    "kubespawner_override": {"image": "{value}"},
                },
            }
        },
    }
]


def without_row(**traits: Any) -> BenchpoolKubeSpawner:
    """A spawner for somebody whom no database of a Hub knows, with everything of whom is a mock."""
    user = Mock(escaped_name="susan", url="/")
    user.name = "susan"
    return BenchpoolKubeSpawner(user=user, _mock=True, **traits)


async def test_a_user_without_groups_and_row_has_kubespawners_form_and_pod() -> None:
    ours = without_row(profile_list=PROFILES)
    theirs = KubeSpawner(_mock=True, profile_list=PROFILES)
    form = await ours.get_options_form()
    assert "Small" in form
    for spawner in (ours, theirs):
        spawner.user_options = {"profile": "small", "image": "a"}
        await spawner.load_user_options()
        assert (await spawner.get_pod_manifest()).spec.containers[0].image == "site/a"


async def test_who_has_no_groups_sees_only_what_is_open_to_all() -> None:
    spawner = without_row(profile_list=[*PROFILES, {"display_name": "L", "allowed_groups": ["x"]}])
    assert " L" not in await spawner.get_options_form()


async def test_options_that_changed_after_they_were_loaded_are_loaded_again() -> None:
    spawner = without_row(profile_list=PROFILES)
    await begun(spawner, {"profile": "small", "image": "a"})
    assert spawner.image == "site/a"
    spawner.user_options["image--unlisted-choice"] = "site/own"
    await spawner.load_user_options()
    assert spawner.image == "site/own"


async def test_what_a_profile_computes_is_computed_once_for_each_start() -> None:
    asked: list[str] = []

    def image(spawner: Any) -> str:
        asked.append(spawner.user.name)
        return "site/computed"

    profile = {"display_name": "P", "kubespawner_override": {"image": image}}
    spawner = without_row(profile_list=[profile])
    for _ in range(2):
        await begun(spawner, {})
        await spawner.load_user_options()  # as each start of KubeSpawner does
    assert asked == ["susan", "susan"]


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"profile": "huge"}, "No such profile: huge. Options include: small"),
        ({"profile": "small", "image": "z"}, "image has no choice 'z'; there are a"),
        ({"profile": "small", "image--unlisted-choice": "evil"}, "failed validation regex"),
        ({"profile": "small", "image": ["a"]}, "unhashable"),
    ],
)
async def test_a_wrong_choice_is_the_users(chosen: dict[str, Any], said: str) -> None:
    spawner = without_row(profile_list=PROFILES)
    spawner.user_options = chosen
    with pytest.raises(StartRefused, match="Choose on the start page") as refused:
        await spawner.load_user_options()
    assert (refused.value.status_code, refused.value.reason) == (400, "gpu-options")
    assert said in str(refused.value)


def broken(spawner: Any) -> Any:
    raise ValueError("no answer from ldap://user:secret@directory")


@pytest.mark.expected_errors("the profiles of servers fail")
@pytest.mark.parametrize(
    "profiles",
    [
        broken,
        [{"display_name": "P", "kubespawner_override": {"image": broken}}],
        [{"display_name": "P", "kubespawner_override": {"mem_limit": ["much"]}}],
        [{"slug": "p"}],
    ],
    ids=["the list", "a computed value", "a wrong value", "a profile without a name"],
)
async def test_a_fault_in_what_an_administrator_wrote_is_not_told_as_the_users(
    profiles: Any, caplog: pytest.LogCaptureFixture
) -> None:
    spawner = without_row(profile_list=profiles)
    spawner.log = logging.getLogger("spawner")
    spawner.user_options = {}
    with pytest.raises(StartRefused, match="It is not your choice that is wrong") as refused:
        await spawner.load_user_options()
    assert (refused.value.status_code, refused.value.reason) == (500, "site-settings")
    assert "secret" not in str(refused.value)
    assert "Traceback" in caplog.text


@pytest.mark.expected_errors("the profiles of servers fail")
async def test_a_form_whose_profiles_fail_says_whose_fault_that_is() -> None:
    with pytest.raises(StartRefused, match="tell an administrator"):
        await without_row(profile_list=broken).get_options_form()


async def test_what_a_profile_says_to_people_reaches_them_as_it_is() -> None:
    def closed(spawner: Any) -> Any:
        raise HTTPError(403, "The lab is closed today")

    spawner = without_row(profile_list=closed)
    spawner.user_options = {}
    with pytest.raises(HTTPError, match="The lab is closed today"):
        await spawner.load_user_options()


async def test_a_start_is_under_way_when_it_returns_and_ends_its_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may_end = asyncio.Event()

    async def made(spawner: Any) -> tuple[str, int]:
        await may_end.wait()
        return ("10.0.0.7", 8888)

    monkeypatch.setattr(KubeSpawner, "_start", made)
    monkeypatch.setattr(BenchpoolKubeSpawner, "_tell_news", lambda self, seen: None)
    spawner = without_row()
    starting = spawner.start()
    assert isinstance(starting, asyncio.Future)
    assert not starting.done()
    progress = asyncio.ensure_future(heard(spawner))
    may_end.set()
    assert await starting == ("10.0.0.7", 8888)
    steps = await asyncio.wait_for(progress, 120)
    assert "waiting for its first answer" in steps[-1]["message"]
    assert all(isinstance(step["progress"], int) for step in steps)


async def test_a_start_that_fails_ends_its_progress_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(spawner: Any) -> None:
        raise RuntimeError("no pod")

    monkeypatch.setattr(KubeSpawner, "_start", fails)
    spawner = without_row()
    starting = spawner.start()
    await asyncio.wait_for(heard(spawner), 120)
    with pytest.raises(RuntimeError, match="no pod"):
        await starting


async def heard(spawner: BenchpoolKubeSpawner) -> list[dict[str, Any]]:
    """Return all progress until it ends by itself."""
    return [step async for step in spawner.progress()]


async def begun(spawner: BenchpoolKubeSpawner, chosen: dict[str, Any]) -> None:
    """Run what comes before a start."""
    spawner.user_options = chosen
    await spawner.run_pre_spawn_hook()
