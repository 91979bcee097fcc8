"""A file and the objects of a cluster are equivalent; errors are reported at their object."""

from __future__ import annotations

import pytest

from benchpool_scheduler.configuration import load
from benchpool_scheduler.configuration.declared import (
    SOURCE,
    Declared,
    document,
    object_name,
    objects,
)
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.resources.policy import PolicySpec
from benchpool_scheduler.resources.pools import (
    NODE_POOLS,
    POOL_SETTINGS,
    PROJECTS,
    BuildSpec,
    NodePoolSpec,
    PoolSettingsSpec,
    ProjectSpec,
)

EXAMPLE = """\
version: 1
build: {default: 0, groups: {staff: 1}, users: {susan: 2}, reserve: 4, lend_idle: false}
projects:
  - {name: Research & Teaching, quota: 6}
  - {name: susan, parent: Research & Teaching, quota: 2, weight: 1, limit: null, priority: 3,
     members: [susan], leads: [susan]}
  - {name: joe, parent: Research & Teaching, quota: 2, members: [joe, "group:staff"]}
  - {name: people, members: ["*"], gpu_hours: {hard: 900},
     personal_projects: {quota: 1, limit: 2, gpu_hours: {soft: 10, hard: 20}}}
  - {name: open, quota: unlimited, min_runtime_s: 60, cpus: {quota: 8, limit: 16}}
pools:
  - {name: big, nodes: {gpu.model: A100}, purpose: [train]}
  - {name: rest}
topology: [topology.kubernetes.io/zone, rack]
policy: {grace_s: 20, preemptions_per_hour: 2, preemptions_per_day: 5}
retention: {ended_days: 30, audit_days: 700}
prices: {currency: EUR, gpu_hour: {H200: 2.5, T4: 0.3}}
gpu_hours: {time_zone: Europe/Vienna, soft: 100, users: {joe: {hard: 200}}}
idle_benches:
  {act: true, tell_s: 600, keeps_a_day: 1,
   exempt: [{who: "profile:large", until: 2026-12-31, why: course}]}
retries: {gpu_error: {times: 3, avoid_s: 60}, exit_code: {times: 1}}
hanging: {after_s: 600, act: requeue}
reservations:
  - {name: paper, project: joe, gpus: 1, from: "2026-11-24 08:00", until: 2026-11-27 18:00:00Z}
"""


def test_file_converts_to_equal_objects() -> None:
    found = objects(EXAMPLE)
    assert [one.title for one in found] == [
        "PoolSettings default",
        f"Project {object_name('Research & Teaching')}",
        *(
            "Project susan",
            "Project joe",
            "Project people",
            "Project open",
            "NodePool big",
            "NodePool rest",
        ),
    ]
    assert load(document(reversed(found)).text) == load(EXAMPLE)


def test_empty_cluster_has_default_configuration() -> None:
    assert load(document([]).text) == load("version: 1")
    assert load(document(objects("version: 1")).text) == load("version: 1")


def test_single_machine_setting_is_rejected() -> None:
    with pytest.raises(InvalidInput, match=r"line 2: build\.parking is for single machines"):
        objects("version: 1\nbuild: {parking: true}")
    assert objects("version: 1\nbuild: {parking: false}")


def test_project_order_follows_creation_time() -> None:
    young = Declared(PROJECTS, "a", ProjectSpec(), created="2026-11-21T10:00:00Z")
    old = Declared(PROJECTS, "b", ProjectSpec(), created="2026-11-20T10:00:00Z")
    first = Declared(PROJECTS, "c", ProjectSpec(order=0), created="2026-11-22T10:00:00Z")
    found = load(document([young, old, first]).text)
    assert [project.name for project in found.projects] == ["c", "b", "a"]


WRONG = [
    (Declared(PROJECTS, "a", ProjectSpec(parent="lab")), "Project a: has the parent 'lab', which"),
    (Declared(PROJECTS, "a", ProjectSpec(quota="many")), "Project a: quota must be a number of"),
    (Declared(PROJECTS, "x", ProjectSpec(name="b")), "Project x: has the name 'b' of the project"),
    (
        Declared(NODE_POOLS, "p", NodePoolSpec(nodes={"a": ""})),
        "NodePool p: nodes.a must be a name",
    ),
    (
        Declared(POOL_SETTINGS, "default", PoolSettingsSpec(policy=PolicySpec(grace_s=1e6))),
        "PoolSettings default: policy.grace_s is 1e+06",
    ),
    (
        Declared(POOL_SETTINGS, "default", PoolSettingsSpec(build=BuildSpec(reserve="all"))),
        "PoolSettings default: build.reserve must be `auto`",
    ),
]


@pytest.mark.parametrize(("wrong", "sentence"), WRONG, ids=[text for _, text in WRONG])
def test_error_is_reported_at_its_object(wrong: Declared, sentence: str) -> None:
    good = Declared(PROJECTS, "b", ProjectSpec(order=1))
    whole = document([good, wrong])
    with pytest.raises(InvalidInput) as caught:
        load(whole.text, SOURCE)
    about, message = whole.fault(caught.value)
    assert about == wrong
    assert message.startswith(sentence), message


def test_invalid_kubernetes_names_are_converted() -> None:
    names = ["a b", "a-b", "A B", "", "…", "x" * 90]
    made = [object_name(name) for name in names]
    assert len(set(made)) == len(names)
    assert made[1] == "a-b"
    assert all(len(name) <= 63 for name in made)
