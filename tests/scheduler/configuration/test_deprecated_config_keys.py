"""Configurations of the release before: former keys are read, changed and reported."""

from __future__ import annotations

import msgspec
import pytest

from benchpool_scheduler.configuration.declared import Declared, document, objects
from benchpool_scheduler.configuration.editing import edited
from benchpool_scheduler.configuration.loader import load
from benchpool_scheduler.contract.configuration import Setting
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.resources.pools import NODE_POOLS, PROJECTS, NodePoolSpec, ProjectSpec

TEXT = """\
version: 1
projects:
  - {name: all, quota: 4, members: ["*"], each: {quota: 1, limit: 2}}
pools:
  - {name: big, nodes: {gpu.model: A100}, serves: [train]}
"""
PRESENT = TEXT.replace("each", "personal_projects").replace("serves", "purpose")


def test_former_keys_mean_the_same() -> None:
    former, present = load(TEXT), load(PRESENT)
    assert (former.projects, former.pools) == (present.projects, present.pools)
    assert former.projects[0].personal_projects is not None
    assert former.pools[0].purpose == {"train"}


def test_former_key_of_projects_is_reported() -> None:
    assert load(TEXT).warnings == (
        "projects[0].each is now called `personal_projects`. Rename it: the next release rejects "
        "`each`.",
    )
    assert load(PRESENT).warnings == ()


@pytest.mark.parametrize(
    "line",
    [
        "projects: [{name: a, members: [b], each: {quota: 1}, personal_projects: {quota: 1}}]",
        "pools: [{name: a, purpose: [train], serves: [train]}]",
    ],
)
def test_two_names_of_one_key_are_rejected(line: str) -> None:
    with pytest.raises(InvalidInput, match="are two names of one key"):
        load(f"version: 1\n{line}\n")


@pytest.mark.parametrize("key", ["each", "personal_projects"])
def test_setting_changes_the_key_in_the_file(key: str) -> None:
    setting = Setting(f"projects.all.{key}.limit", 5)
    assert edited(TEXT, [setting]) == TEXT.replace("limit: 2", "limit: 5")
    assert edited(PRESENT, [setting]) == PRESENT.replace("limit: 2", "limit: 5")
    hours = Setting(f"projects.all.{key}.gpu_hours.hard", 9)
    assert load(edited(TEXT, [hours])).projects == load(edited(PRESENT, [hours])).projects


def test_objects_of_former_keys_use_the_present_ones() -> None:
    assert objects(TEXT) == objects(PRESENT)


def test_objects_with_former_fields_are_read() -> None:
    body = {"members": ["*"], "each": {"quota": 1, "limit": 2}}
    project = Declared(PROJECTS, "all", msgspec.convert(body, ProjectSpec))
    labels = {"gpu.model": "A100"}
    pool = Declared(NODE_POOLS, "big", NodePoolSpec(labels, serves=["train"]))
    found = load(document([project, pool]).text)
    assert (found.projects[0].personal_projects, found.pools) == (
        load(PRESENT).projects[0].personal_projects,
        load(PRESENT).pools,
    )
