"""Single values of ``benchpool.yaml`` are set; all other text keeps its form."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.configuration import command_of, default_configuration, edited, load
from benchpool_scheduler.contract.configuration import Setting
from benchpool_scheduler.errors import InvalidInput

TEXT = """\
# who has what
version: 1
build:
  users: {susan: 1}     # the bench

# the projects
projects:
  - name: vision        # since 2024
    # agreed in May
    quota: 4
    members: [susan, group:staff]

  # speech is new
  - name: speech
    quota: 2            # for now

# for everybody
policy:
  grace_s: 30
"""


def test_changed_number_changes_one_yaml_line() -> None:
    assert edited(TEXT, [Setting("projects.vision.quota", 6)]) == TEXT.replace(
        "quota: 4", "quota: 6"
    )


def test_scalar_for_list_is_rejected_with_correct_form() -> None:
    with pytest.raises(InvalidInput) as refused:
        edited(TEXT, [Setting("projects.speech.members", "joe")])
    advice = "projects.speech.members+=joe"
    assert advice in refused.value.message
    added = edited(TEXT, [Setting("projects.speech.members", add=["joe"])])
    assert "members: [joe]" in added, "what it advises does it"


def test_new_project_key_precedes_comment_on_next_project() -> None:
    assert edited(TEXT, [Setting("projects.vision.limit", 8)]) == TEXT.replace(
        "group:staff]\n", "group:staff]\n    limit: 8\n"
    )


def test_new_project_precedes_comment_on_next_section() -> None:
    text = edited(
        TEXT,
        [
            Setting("projects.joe.name", "joe"),
            Setting("projects.joe.quota", 1),
            Setting("projects.joe.members", add=["joe"]),
        ],
    )
    assert text == TEXT.replace(
        "for now\n", "for now\n  - name: joe\n    quota: 1\n    members: [joe]\n"
    )


def test_members_are_added_and_removed() -> None:
    changed = edited(
        TEXT,
        [
            Setting("projects.vision.members", add=["joe", "susan"], remove=["group:staff"]),
            Setting("build.users.ann.lee", 2),
            Setting("build.users.susan"),
        ],
    )
    now = load(changed)
    project = now.project("vision")
    assert project is not None
    assert project.members == ("susan", "joe")
    assert now.build.users == {"ann.lee": 2}
    assert "# the bench" in changed


def test_removal_keeps_unrelated_comments() -> None:
    text = edited(TEXT, [Setting("projects.speech.name")])
    assert [project.name for project in load(text).projects] == ["vision"]
    assert "# for everybody\npolicy:" in text
    assert "# agreed in May" in text


@pytest.mark.parametrize("name", ["no", "123", "1e3", "on", "ann lee", "zoë", "a #b", "null"])
def test_ambiguous_yaml_name_stays_string(name: str) -> None:
    text = edited(
        TEXT,
        [
            Setting(f"build.users.{name}", 2),
            Setting("projects.vision.members", add=[name]),
            Setting(f"projects.{name}.name", name),
        ],
    )
    now = load(text)
    project = now.project("vision")
    assert now.build.users[name] == 2
    assert project is not None
    assert name in project.members
    assert now.project(name) is not None
    assert load(edited(text, [Setting(f"build.users.{name}", 3)])).build.users[name] == 3


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (Setting("projects.visoin.quota", 2), "no project 'visoin'; did you mean `vision`?"),
        (Setting("projects.vison.name", None), "There is no project 'vison' to remove."),
        (Setting("projects.vision.name", "other"), "Projects cannot be renamed"),
        (Setting("projects.vision.name", "vision"), "Project 'vision' already exists"),
        (Setting("projects.vision.members", remove=["eve"]), "has no 'eve'"),
        (Setting("projects.vision.quota", add=["eve"]), "is not a list"),
        (Setting("polcy.grace_s", 2), "did you mean `policy`"),
        (Setting("pools", 2), "are changed in the file"),
        (Setting("build.users", 2), "cannot be set by itself"),
    ],
    ids=lambda one: one.key if isinstance(one, Setting) else "",
)
def test_unsettable_value_is_rejected_with_reason(setting: Setting, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        edited(TEXT, [setting])
    assert message in refused.value.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version: 1\npolicy: 30\n", "policy.grace_s cannot be set, because its parent has"),
        (
            "version: 1\nbuild: {users: {a: 1, ? b}}\n  x\n",
            "cannot be changed here: it is not YAML",
        ),
    ],
)
def test_unusual_file_is_not_changed(text: str, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        edited(text, [Setting("policy.grace_s", 2)])
    assert message in refused.value.message


def test_value_shared_by_anchor_is_not_changed() -> None:
    shared = TEXT.replace("[susan, group:staff]", "&all [susan]").replace(
        "for now", "for now\n    members: *all"
    )
    with pytest.raises(InvalidInput, match="without changing other values too"):
        edited(shared, [Setting("projects.vision.members", add=["joe"])])


def test_settings_are_shown_as_command() -> None:
    assert (
        command_of([Setting("projects.my team.members", add=["joe"]), Setting("build.users.ann")])
        == "benchpool config set 'projects.my team.members+=joe' build.users.ann="
    )


names = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,8}", fullmatch=True)
numbers = st.integers(0, 20)
SETTINGS = st.lists(
    st.one_of(
        st.builds(Setting, st.builds("build.users.{}".format, names), numbers),
        st.builds(Setting, st.builds("build.groups.{}".format, names), numbers),
        st.builds(
            Setting,
            st.sampled_from(["projects.susan.quota", "projects.susan.limit", "policy.grace_s",
                             "projects.susan.priority", "budgets.jobs", "build.default"]),
            st.integers(1, 20),
        ),
        st.builds(
            Setting, st.just("projects.susan.members"), add=st.lists(names, min_size=1, max_size=3)
        ),
        st.sampled_from([Setting("projects.susan.limit"), Setting("build.users.susan")]),
    ),
    min_size=1,
    max_size=6,
)  # fmt: skip


@given(SETTINGS)
def test_set_value_is_read_back_and_comments_stay(settings: list[Setting]) -> None:
    before = default_configuration("susan", 8)
    text = edited(before, settings)
    load(text)
    comments = [line.partition("#")[2] for line in before.splitlines() if "#" in line]
    assert [line.partition("#")[2] for line in text.splitlines() if "#" in line] == comments
    again = text
    for one in settings:
        again = edited(again, [one])
    assert yaml.safe_load(again) == yaml.safe_load(text)
