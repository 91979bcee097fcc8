"""A what-if with single values reads the same configuration that saving them would."""

from __future__ import annotations

import pytest

from benchpool_scheduler.configuration import attempt, edited, load
from benchpool_scheduler.contract.configuration import Setting
from benchpool_scheduler.errors import InvalidInput

TEXT = """\
version: 1
build:
  default: 1
  users: {susan: 1, "123": 2, zoë: 1}   # by name
  groups: {staff: 2}
  oversubscribe: true
projects:
  - {name: research, quota: unlimited, cpus: {quota: 8, limit: 16.5}}
  # agreed in May
  - name: vision
    parent: research
    quota: 4
    weight: 1.5
    limit: null
    members: [susan, "group:staff", "on"]
  - {name: guests, members: ["*"], personal_projects: {quota: 1, limit: 2}}
pools: [{name: all, purpose: [build, train]}]
topology: [rack]
policy: {grace_s: 30, claim_delay_s: 0.5}
"""

SETTINGS = (
    (),
    (Setting("projects.vision.quota", 6),),
    (Setting("projects.vision.members", add=["joe", "no"], remove=["susan"]),),
    (Setting("projects.joe.name", "joe"), Setting("projects.joe.members", add=["joe"])),
    (Setting("projects.vision.limit", 9), Setting("projects.vision.weight")),
    (Setting("build.users.susan"), Setting("build.users.1e3", 2), Setting("build.default", 0)),
    (Setting("projects.guests.personal_projects.limit", 5), Setting("policy.grace_s", 1.25)),
    (Setting("projects.vision.name"),),
)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_trial_equals_saved_configuration(settings: tuple[Setting, ...]) -> None:
    saved = load(edited(TEXT, settings))
    assert attempt(TEXT, settings) == saved


def test_text_with_anchors_is_not_tried() -> None:
    alias = "version: 1\nprojects: [{name: a, members: &m [x]}, {name: b, members: *m}]"
    added = [Setting("projects.a.members", add=["joe"])]
    with pytest.raises(InvalidInput, match="it uses anchors"):
        edited(alias, added)
    assert attempt(alias, added) is None


def test_numeric_name_stays_as_written() -> None:
    octal = "version: 1\nbuild: {users: {0123: 1}}"
    tried = attempt(octal, [Setting("build.default", 2)])
    assert tried is not None
    assert tried.build.users == {"0123": 1}


def test_invalid_value_is_rejected() -> None:
    with pytest.raises(InvalidInput, match="quota must be"):
        attempt(TEXT, [Setting("projects.vision.quota", "many")])
    with pytest.raises(InvalidInput, match="no project 'visoin'"):
        attempt(TEXT, [Setting("projects.visoin.quota", 2)])
