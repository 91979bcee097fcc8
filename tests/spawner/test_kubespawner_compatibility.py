"""Behaviour that hooks and tests written for KubeSpawner depend on also holds here."""

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
    """Return a spawner for a mock user without a row in the Hub's database."""
    user = Mock(escaped_name="susan", url="/")
    user.name = "susan"
    return BenchpoolKubeSpawner(user=user, _mock=True, **traits)


async def test_user_without_database_row_gets_kubespawner_form() -> None:
    ours = without_row(profile_list=PROFILES)
    theirs = KubeSpawner(_mock=True, profile_list=PROFILES)
    form = await ours.get_options_form()
    assert "Small" in form
    for spawner in (ours, theirs):
        spawner.user_options = {"profile": "small", "image": "a"}
        await spawner.load_user_options()
        assert (await spawner.get_pod_manifest()).spec.containers[0].image == "site/a"


async def test_user_without_groups_sees_open_profiles_only() -> None:
    spawner = without_row(profile_list=[*PROFILES, {"display_name": "L", "allowed_groups": ["x"]}])
    assert " L" not in await spawner.get_options_form()


async def test_changed_options_are_reloaded() -> None:
    spawner = without_row(profile_list=PROFILES)
    await begun(spawner, {"profile": "small", "image": "a"})
    assert spawner.image == "site/a"
    spawner.user_options["image--unlisted-choice"] = "site/own"
    await spawner.load_user_options()
    assert spawner.image == "site/own"


async def test_profile_callable_runs_once_per_start() -> None:
    asked: list[str] = []

    def image(spawner: Any) -> str:
        asked.append(spawner.user.name)
        return "site/computed"

    profile = {"display_name": "P", "kubespawner_override": {"image": image}}
    spawner = without_row(profile_list=[profile])
    for _ in range(2):
        await begun(spawner, {})
        await spawner.load_user_options()  # as in each start of KubeSpawner
    assert asked == ["susan", "susan"]


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"profile": "huge"}, "No such profile: huge. Options include: small"),
        ({"profile": "small", "image": "z"}, "image has no choice 'z'; there are a"),
        ({"profile": "small", "image--unlisted-choice": "evil"}, "failed validation regex"),
        ({"profile": "small", "image": ["a"]}, "unhashable"),
    ],
)
async def test_wrong_choice_is_reported_as_user_error(chosen: dict[str, Any], message: str) -> None:
    spawner = without_row(profile_list=PROFILES)
    spawner.user_options = chosen
    with pytest.raises(StartRefused, match="Choose on the start page") as refused:
        await spawner.load_user_options()
    assert (refused.value.status_code, refused.value.reason) == (400, "gpu-options")
    assert message in str(refused.value)


def broken(spawner: Any) -> Any:
    raise ValueError("no answer from ldap://user:secret@directory")


@pytest.mark.expected_errors("the server profiles fail")
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
async def test_broken_profile_is_reported_as_site_error(
    profiles: Any, caplog: pytest.LogCaptureFixture
) -> None:
    spawner = without_row(profile_list=profiles)
    spawner.log = logging.getLogger("spawner")
    spawner.user_options = {}
    with pytest.raises(StartRefused, match="Your choice is not the cause") as refused:
        await spawner.load_user_options()
    assert (refused.value.status_code, refused.value.reason) == (500, "site-settings")
    assert "secret" not in str(refused.value)
    assert "Traceback" in caplog.text


@pytest.mark.expected_errors("the server profiles fail")
async def test_form_with_broken_profiles_refers_to_administrator() -> None:
    with pytest.raises(StartRefused, match="Ask an administrator"):
        await without_row(profile_list=broken).get_options_form()


async def test_http_error_of_profile_is_passed_on() -> None:
    def closed(spawner: Any) -> Any:
        raise HTTPError(403, "The lab is closed today")

    spawner = without_row(profile_list=closed)
    spawner.user_options = {}
    with pytest.raises(HTTPError, match="The lab is closed today"):
        await spawner.load_user_options()


async def test_start_returns_pending_future_and_ends_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may_end = asyncio.Event()

    async def made(spawner: Any) -> tuple[str, int]:
        await may_end.wait()
        return ("10.0.0.7", 8888)

    monkeypatch.setattr(KubeSpawner, "_start", made)
    monkeypatch.setattr(BenchpoolKubeSpawner, "_report_news", lambda self, seen: None)
    spawner = without_row()
    starting = spawner.start()
    assert isinstance(starting, asyncio.Future)
    assert not starting.done()
    progress = asyncio.ensure_future(progress_events(spawner))
    may_end.set()
    assert await starting == ("10.0.0.7", 8888)
    steps = await asyncio.wait_for(progress, 120)
    assert "waiting for its first answer" in steps[-1]["message"]
    assert all(isinstance(step["progress"], int) for step in steps)


async def test_failed_start_ends_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(spawner: Any) -> None:
        raise RuntimeError("no pod")

    monkeypatch.setattr(KubeSpawner, "_start", fails)
    spawner = without_row()
    starting = spawner.start()
    await asyncio.wait_for(progress_events(spawner), 120)
    with pytest.raises(RuntimeError, match="no pod"):
        await starting


async def progress_events(spawner: BenchpoolKubeSpawner) -> list[dict[str, Any]]:
    """Return all progress events until the stream ends."""
    return [step async for step in spawner.progress()]


async def begun(spawner: BenchpoolKubeSpawner, chosen: dict[str, Any]) -> None:
    """Run the steps before a start."""
    spawner.user_options = chosen
    await spawner.run_pre_spawn_hook()
