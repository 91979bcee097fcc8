"""Meaning of ``benchpool.yaml`` and its error messages."""

from __future__ import annotations

import pytest

from benchpool_scheduler.configuration import (
    NodePool,
    compare,
    default_configuration,
    load,
    with_personal,
)
from benchpool_scheduler.configuration.idle_benches import MOST_EXEMPT
from benchpool_scheduler.configuration.reservations import MOST as RESERVATIONS
from benchpool_scheduler.configuration.reservations import with_reservations
from benchpool_scheduler.errors import InvalidInput

EXAMPLE = """\
version: 1
build:
  default: 0
  groups: {staff: 1}
  users: {susan: 2}
  reserve: auto
  oversubscribe: false
  lend_idle: false
projects:
  - {name: research, quota: 6}
  - {name: susan, parent: research, quota: 2, weight: 1, limit: null, priority: 0,
     members: [susan], leads: [susan]}
  - {name: joe, parent: research, quota: 2, members: [joe, "group:staff"]}
  - {name: open, quota: unlimited, min_runtime_s: 60, cpus: {quota: 8, limit: 16}}
pools:
  - {name: big, nodes: {gpu.model: A100}, purpose: [train]}
policy: {grace_s: 20, preemptions_per_hour: 2, preemptions_per_day: 5}
"""


def test_reference_example_is_read_as_documented() -> None:
    found = load(EXAMPLE)
    research, susan, joe, free = found.projects
    assert (found.build.groups, found.build.users) == ({"staff": 1}, {"susan": 2})
    assert found.build.reserve is None
    assert (research.project.quota, research.project.weight) == (6, None)
    assert (susan.project.parent, susan.project.limit, susan.leads) == (
        "research",
        None,
        ("susan",),
    )
    assert joe.members == ("joe", "group:staff")
    assert (free.project.quota, free.project.cpus.quota, free.project.min_runtime_s) == (
        None,
        8,
        60,
    )
    assert found.pools == (NodePool("big", {"gpu.model": "A100"}, frozenset({"train"})),)
    policy = found.policy
    assert (policy.grace_s, policy.preemptions_per_hour, policy.preemptions_per_day) == (20, 2, 5)


EXEMPT = ", ".join(["{who: ann, until: 2026-12-31}"] * (MOST_EXEMPT + 1))
PROJECT = "version: 1\nprojects: [{name: a, quota: 1}]"
RESERVED = "{name: r, project: a, gpus: 1, from: 2026-12-01, until: 2026-12-31}"
MANY_RESERVED = ", ".join(
    RESERVED.replace("r,", f"r{number},") for number in range(RESERVATIONS + 1)
)

ERRORS = [
    ("", "is empty"),
    ("{}", "has no `version`"),
    ("version: 2", "line 1: version must be 1"),
    ("version: 1\nprojcts: []", "line 2: projcts is not a known key; did you mean `projects`?"),
    ("version: 1\nbuild:\n  defualt: 1", "line 3: build.defualt is not a known key"),
    ("version: 1\nbuild: {default: -1}", "build.default is -1; it must be between 0 and"),
    ("version: 1\nbuild: {default: 1.5}", "build.default must be a whole number, not '1.5'"),
    ("version: 1\nbuild: {default: true}", "build.default must be a whole number"),
    ("version: 1\nbuild: {reserve: all}", "build.reserve must be `auto` or a number"),
    ("version: 1\nbuild: {lend_idle: 1}", "build.lend_idle must be true or false"),
    ("version: 1\nbuild: [1]", "build must be a mapping of keys to values, not a list"),
    ("version: 1\nbuild: {default: 1, default: 2}", "build.default is given twice"),
    ("version: 1\nprojects: {a: 1}", "projects must be a list, not a mapping"),
    ("version: 1\nprojects: [{quota: 1}]", "projects[0] has no `name`"),
    (
        "version: 1\nprojects: [{name: a, quota: many}]",
        "projects[0].quota must be a number of GPUs",
    ),
    ("version: 1\nprojects: [{name: a, quota: -2}]", "projects[0].quota is -2"),
    ("version: 1\nprojects: [{name: a, weight: -1}]", "projects[0].weight is -1"),
    ("version: 1\nprojects: [{name: a, weight: .nan}]", "projects[0].weight must be a number"),
    ("version: 1\nprojects:\n- name: a\n- name: a", "line 4: projects[1] has the name 'a' of the"),
    ("version: 1\nprojects: [{name: lab}, {name: c, parent: lap}]", "did you mean `lab`?"),
    (
        "version: 1\nprojects: [{name: a, parent: b}, {name: b, parent: a}]",
        "is its own ancestor (a in b in a)",
    ),
    ("version: 1\nprojects: [{name: a, members: ['team:x']}]", "members[0] is 'team:x'"),
    ("version: 1\nprojects: [{name: a, members: joe}]", "projects[0].members must be a list"),
    ("version: 1\npools: [{name: a, purpose: [trian]}]", "did you mean `train`?"),
    ("version: 1\npools: [{name: a}, {name: a}]", "pools[1] has the name 'a' of another pool"),
    ("version: 1\ntopology: rack", "topology must be a list"),
    ("version: 1\ntopology: [node]", "topology[0] is 'node'; name a node label"),
    ("version: 1\ntopology: [rack, a.b/rack]", "topology[1] has the name 'rack', as 'rack' before"),
    ("version: 1\nprices: {currency: EUR}", "prices needs `currency`, such as EUR, and `gpu_hour`"),
    ("version: 1\nprices: {gpu_hour: {T4: 1}}", "prices needs `currency`"),
    ("version: 1\nprices: {currency: EUR, gpu_hour: {T4: -1}}", "prices.gpu_hour.T4 is -1"),
    ("version: 1\nprices: {currency: EUR, gpu_hour: {T4: much}}", "prices.gpu_hour.T4 must be a"),
    ("version: 1\npolicy: {grace: 3}", "did you mean `grace_s`?"),
    ("version: 1\npolicy: {preemptions_per_hour: 0.5}", "must be a whole number"),
    ("version: 1\npolicy: {grace_s: 1e9}", "policy.grace_s must be a number, not '1e9'"),
    ("version: 1\npolicy: {grace_s: 100000}", "it must be between 0 and 86400"),
    ("version: [1", "line 1: this is not YAML"),
    ("version: 1\nbuild: {default: !!python/name:os.system x}", "build.default cannot be"),
    ("version: 1\nbuild: {users: {[1]: 2}}", "build.users has a key that is not a plain word."),
    ("version: 1\nbuild: {default: [1]}", "build.default must be a single value, not a list."),
    ("version: 1\nprojects: [{name: '" + "a" * 101 + "'}]", "must have at most 100 characters"),
    ('version: 1\nprojects: [{name: "a\\nb"}]', "projects[0].name must have at most 100"),
    ("version: 1\nprojects: [{name: a\0}]", "is not YAML: it has characters that are not allowed"),
    ("# " + "a" * (1 << 20), "is larger than"),
    ("version: 1\npools: []", "pools is empty; omit the key for one pool that serves both."),
    ("version: 1\npools: [{name: a, purpose: []}]", "is empty; name build, train or both."),
    ("version: 1\ntopology: [a, b, c, d, e, f, g, h, i]", "topology has 9 levels; "),
    (f"version: 1\nidle_benches: {{exempt: [{EXEMPT}]}}", "exempt has more than"),
    (f"{PROJECT}\nreservations: [{RESERVED}, {RESERVED}]", "has the name 'r' of another"),
    (f"{PROJECT}\nreservations: [{RESERVED.replace('2026', '1900')}]", "is in the year 1900; "),
    (
        f"{PROJECT}\nreservations: [{MANY_RESERVED}]",
        f"reservations has more than {RESERVATIONS} entries; remove expired ones.",
    ),
]


@pytest.mark.parametrize(("text", "expected"), ERRORS, ids=[what for _, what in ERRORS])
def test_error_names_file_line_key_and_remedy(text: str, expected: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        load(text, "pool.yaml")
    assert expected in caught.value.message
    assert caught.value.message.startswith("pool.yaml")
    assert caught.value.code == "configuration"


def test_children_quota_above_parent_quota_is_warning() -> None:
    found = load(
        "{version: 1, projects: [{name: p, quota: 3}, {name: a, parent: p, quota: 2},"
        " {name: b, parent: p, quota: 2}]}"
    )
    assert found.warnings == (
        "The projects below p are guaranteed 4 GPUs together (a 2, b 2), but p itself only 3: the "
        "excess has no effect.",
    )


@pytest.mark.parametrize("ring", [False, True])
def test_too_deep_tree_is_rejected_immediately(ring: bool) -> None:
    names = [f"p{i}" for i in range(3000)]
    above = [names[-1] if ring else None, *names]
    lines = [
        f"- {{name: {name}{f', parent: {parent}' if parent else ''}}}"
        for name, parent in zip(names, above, strict=False)
    ]
    with pytest.raises(InvalidInput, match="has more than 15 projects above it"):
        load("\n".join(["version: 1", "projects:", *lines]))


def test_guarantee_made_void_by_limit_is_warning() -> None:
    found = load(
        "{version: 1, projects: [{name: p, quota: 9, limit: 6, cpus: {quota: 8}},"
        " {name: a, parent: p, quota: 7, cpus: {quota: 6}},"
        " {name: b, parent: p, quota: 0, cpus: {quota: 4}, memory_gib: {quota: 9, limit: 2}},"
        " {name: all, quota: 1, members: ['*'], personal_projects: {quota: 2}}]}"
    )
    assert found.warnings == (
        "Project p has quota 9 and limit 6: it never gets more than 6 GPUs.",
        "The projects below p are guaranteed 7 GPUs together (a 7), but p itself only 6: the "
        "excess has no effect.",
        "The projects below p are guaranteed 10 CPUs together (a 6, b 4), but p itself only 8: "
        "the excess has no effect.",
        "Project b has quota 9 and limit 2: it never gets more than 2 GiB of memory.",
        "Each member of project all is guaranteed 2 GPUs, but all itself only 1: no member can "
        "get the full guarantee.",
    )


def test_parent_without_quota_gets_sum_of_children() -> None:
    text = (
        "{version: 1, projects: [{name: top}, {name: p, parent: top}, {name: a, parent: p,"
        " quota: 2}, {name: b, parent: p, quota: 3}, {name: zero, quota: 0},"
        " {name: c, parent: zero, quota: 1}, {name: leaf}]}"
    )
    quotas = {str(it.name): it.project.quota for it in load(text).projects}
    assert quotas == {"top": 5, "p": 5, "a": 2, "b": 3, "zero": 0, "c": 1, "leaf": 0}
    free = load(text.replace("quota: 3", "quota: unlimited"))
    assert free.projects[0].project.quota is None
    assert load(text).warnings == (
        "The projects below zero are guaranteed 1 GPUs together (c 1), but zero itself only 0: "
        "the excess has no effect.",
    )


def test_parent_without_quota_counts_personal_projects() -> None:
    template = "{name: all, members: ['*'], personal_projects: {quota: 2}}"
    found = load(f"{{version: 1, projects: [{template}]}}")
    assert found.projects[0].project.quota == 0
    people = {"ann": set[str](), "joe": set[str]()}
    assert with_personal(found, people).projects[0].project.quota == 4


def test_reservation_adds_to_quota_sum_of_parent() -> None:
    found = load(
        "{version: 1, projects: [{name: p}, {name: a, parent: p, quota: 2}], reservations:"
        " [{name: r, project: p, gpus: 3, from: '2026-01-01 00:00', until: '2026-01-02 00:00'},"
        " {name: s, project: a, gpus: 1, from: '2026-01-01 00:00', until: '2026-01-02 00:00'}]}"
    )
    begins = found.reservations[0].begins_s
    there = with_reservations(found, begins)
    assert [it.project.quota for it in there.projects] == [6, 3]
    assert [it.project.quota for it in with_reservations(found, begins - 1).projects] == [2, 2]


def test_levels_are_named_by_label_suffix_widest_first() -> None:
    found = load("{version: 1, topology: [topology.kubernetes.io/zone, rack]}")
    assert [level.name for level in found.topology] == ["zone", "rack"]
    assert compare(load("version: 1"), found) == [
        "Topology levels, widest first: none → topology.kubernetes.io/zone > rack."
    ]


def test_user_name_with_any_characters_survives_first_configuration() -> None:
    for name in ("susan", "o'neil", "[ann]", "zoë", "- #"):
        found = load(default_configuration(name, 4))
        assert found.build.users == {name: 1}
        assert found.projects[0].members == (name,)
        assert found.projects[0].project.quota == 3


def test_comparison_shows_quota_changes() -> None:
    before = load(EXAMPLE)
    after = load(
        EXAMPLE.replace("users: {susan: 2}", "users: {susan: 1, eve: 1}")
        .replace("{name: joe, parent: research, quota: 2", "{name: joe, parent: research, quota: 3")
        .replace("grace_s: 20", "grace_s: 30")
    )
    assert compare(before, before) == []
    assert compare(before, after) == [
        "Build quota of user eve: not set → 1 GPU.",
        "Build quota of user susan: 2 → 1 GPU.",
        "Project joe (joe, group:staff): guaranteed quota 2 → 3.",
        "Policy: grace_s 20 → 30.",
    ]


def test_comparison_shows_changed_gpu_hour_price() -> None:
    before = load("{version: 1, prices: {currency: EUR, gpu_hour: {H200: 2.5, T4: 0.3}}}")
    after = load("{version: 1, prices: {currency: USD, gpu_hour: {H200: 3}}}")
    assert compare(before, after) == [
        "Currency of prices: EUR → USD.",
        "Price of a GPU-hour of H200: 2.5 → 3.",
        "Price of a GPU-hour of T4: 0.3 → none.",
    ]


@pytest.mark.parametrize("levels", [25, 1_000, 100_000])
@pytest.mark.parametrize("sign", ["[", "{a: "])
def test_too_deep_nesting_is_rejected_with_position_and_limit(levels: int, sign: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        load(f"version: 1\nprojects: {sign * levels}")
    assert refused.value.message == (
        "benchpool.yaml, line 2: this is not YAML: it is nested more than 20 levels deep."
    )
