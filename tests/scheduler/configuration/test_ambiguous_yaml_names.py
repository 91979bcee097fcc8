"""Names that YAML reads as numbers, booleans, dates or null stay as written."""

from __future__ import annotations

import pytest

from benchpool_scheduler.configuration import edited, load
from benchpool_scheduler.configuration.declared import document, objects
from benchpool_scheduler.contract.configuration import Setting

NAMES = (
    *("03423453", "12345678", "1e5", "1_000", "0x1F", "1.5", "no", "on", "True", "null"),
    *("2026-11-26", "007"),
)
LISTED = ", ".join(NAMES)
USERS = ", ".join(f"{name}: 1" for name in NAMES)
TEXT = f"""\
version: 1
build: {{users: {{{USERS}}}}}
projects:
  - {{name: no, quota: 1}}  # no country
  - {{name: 2026, parent: no, quota: null, members: [{LISTED}], leads: [ann, 007]}}
"""


def test_numeric_names_are_equal_as_keys_and_values() -> None:
    found = load(TEXT)
    assert tuple(found.build.users) == NAMES
    assert [it.name for it in found.projects] == ["no", "2026"]
    assert found.projects[1].members == NAMES
    assert found.projects[1].project.parent == "no"
    assert found.projects[1].leads == ("ann", "007")


@pytest.mark.parametrize("name", NAMES)
def test_numeric_name_is_removed_and_rest_kept(name: str) -> None:
    settings = [
        Setting("projects.2026.members", remove=[name]),
        Setting(f"build.users.{name}", 2),
        Setting("projects.no.members", add=[name]),
    ]
    text = edited(TEXT, settings)
    found = load(text)
    assert "# no country" in text
    assert found.projects[1].members == tuple(one for one in NAMES if one != name)
    assert found.build.users == {one: 2 if one == name else 1 for one in NAMES}
    assert found.projects[0].members == (name,)


def test_cluster_objects_accept_numeric_names() -> None:
    again = load(document(objects(TEXT)).text)
    assert [(it.name, it.members, it.leads) for it in again.projects] == [
        (it.name, it.members, it.leads) for it in load(TEXT).projects
    ]
    assert again.build.users == load(TEXT).build.users
