"""Grouping of admitted pods into jobs, and the resources that each job requests."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from benchpool_scheduler.contract import kubernetes as names
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.runtime.admitted import AdmittedWorkload
from benchpool_scheduler.runtime.kubernetes.admitted.namespaces import (
    AdmittedNamespace,
    read_namespaces,
)
from benchpool_scheduler.runtime.kubernetes.admitted.raw_admitted_pods import AdmittedPod
from benchpool_scheduler.runtime.kubernetes.admitted.workloads import gather, workload_of
from benchpool_support.admitted import pod

SPACES = {"team-a": AdmittedNamespace("team-a", "vision", "susan", ("speech",))}
PREFIXES = ("nvidia.com/gpu", "nvidia.com/mig-")
GROUP = {names.GROUP_NAME: "g"}
OF_TWO = {names.GROUP_SIZE: "2"}


def found(pods: Iterable[AdmittedPod]) -> list[AdmittedWorkload]:
    """Return the workloads of these pods."""
    made = (workload_of(job, them, SPACES, PREFIXES) for job, them in gather(pods).items())
    return [one for one in made if one is not None]


def test_bare_pod_is_one_job() -> None:
    (one,) = found([pod("train", gpus=2)])
    assert (one.owner_kind, one.owner, one.pods) == ("Pod", "train", ("train",))
    assert (one.user, one.project, one.gpus, one.problem) == ("susan", "vision", 2, "")
    assert one.waiting
    assert not one.preemptible


def test_deployment_pod_is_one_job_and_keeps_id() -> None:
    pods = [pod(f"llm-{name}", owner=("ReplicaSet", "llm-7d9c")) for name in "ab"]
    first, second = found(pods)
    assert first.job != second.job
    assert (first.owner_kind, first.owner) == ("ReplicaSet", "llm-7d9c")
    assert [one.job for one in found(reversed(pods))] == [second.job, first.job]


def test_cores_and_memory_come_from_requests() -> None:
    asked = {"requests": {"cpu": "1500m", "memory": "2Gi"}, "limits": {"nvidia.com/gpu": "1"}}
    (one,) = found([pod("a", containers=[{"name": "main", "resources": asked}])])
    assert (one.cpus, one.memory_gib) == (1.5, 2.0)


def test_pod_may_name_only_projects_of_namespace() -> None:
    (one,) = found([pod("a", annotations={names.PROJECT: "speech"})])
    assert (one.project, one.problem) == ("speech", "")
    (other,) = found([pod("b", annotations={names.PROJECT: "chemistry"})])
    assert other.problem == (
        "Pods of namespace team-a may not use project chemistry; an administrator allows: vision, "
        "speech."
    )


def test_pods_of_other_namespaces_are_ignored() -> None:
    assert found([pod("a", namespace="elsewhere")]) == []


def test_pod_is_preemptible_only_by_label() -> None:
    (one,) = found([pod("a", labels={names.PREEMPTIBLE: "true"})])
    assert one.preemptible
    (other,) = found([pod("a", labels={names.PREEMPTIBLE: "yes"})])
    assert not other.preemptible


def test_complete_group_is_one_job() -> None:
    first = pod("w-0", labels=GROUP, annotations=OF_TWO)
    (waits,) = found([first])
    assert waits.problem == "Incomplete group g: 1 of 2 pods exist."
    (whole,) = found([first, pod("w-1", labels=GROUP, annotations=OF_TWO)])
    assert (whole.pods, whole.problem) == (("w-0", "w-1"), "")


def test_pods_beyond_group_size_form_next_group() -> None:
    pods = [pod(f"w-{index}", labels=GROUP, annotations=OF_TWO) for index in range(3)]
    whole, rest = found(pods)
    assert (whole.pods, rest.pods) == (("w-0", "w-1"), ("w-2",))
    assert "1 of 2 pods" in rest.problem


def test_indexed_job_workers_follow_index_order() -> None:
    index = "batch.kubernetes.io/job-completion-index"
    pods = [
        pod("w-x", owner=("Job", "w"), labels=GROUP | {index: "1"}, annotations=OF_TWO),
        pod("w-y", owner=("Job", "w"), labels=GROUP | {index: "0"}, annotations=OF_TWO),
    ]
    (whole,) = found(pods)
    assert whole.pods == ("w-y", "w-x")


@pytest.mark.parametrize(
    ("labels", "annotations"),
    [
        (
            {"kueue.x-k8s.io/pod-group-name": "g"},
            {"kueue.x-k8s.io/pod-group-total-count": "2"},
        ),
        ({"scheduling.x-k8s.io/pod-group": "g"}, OF_TWO),
        ({}, {"scheduling.k8s.io/group-name": "g"} | OF_TWO),
        ({"training.kubeflow.org/job-name": "g"}, OF_TWO),
        ({"ray.io/cluster": "g"}, OF_TWO),
        ({"batch.kubernetes.io/job-name": "g"}, OF_TWO),
    ],
)
def test_groups_of_other_tools_are_recognised(
    labels: dict[str, str], annotations: dict[str, str]
) -> None:
    pods = [pod(name, labels=labels, annotations=annotations) for name in ("a", "b")]
    assert [one.pods for one in found(pods)] == [("a", "b")]


def test_pods_without_group_size_start_individually() -> None:
    pods = [pod(name, labels={"ray.io/cluster": "r"}) for name in ("head", "worker")]
    assert len(found(pods)) == 2


@pytest.mark.parametrize(
    ("pods", "words"),
    [
        ([pod("a", labels=GROUP)], "do not state the size"),
        ([pod("a", labels=GROUP, annotations={names.GROUP_SIZE: "0"})], "do not state the size"),
        ([pod("a", gpus=None)], "requests no GPU"),
        (
            [
                pod("a", labels=GROUP, annotations=OF_TWO),
                pod("b", labels=GROUP, annotations=OF_TWO, gpus=2),
            ],
            "request different GPUs",
        ),
        (
            [
                pod("a", labels=GROUP, annotations=OF_TWO),
                pod("b", labels=GROUP, annotations=OF_TWO | {names.PROJECT: "speech"}),
            ],
            "name different projects",
        ),
    ],
)
def test_uncountable_pods_report_problem(pods: list[AdmittedPod], words: str) -> None:
    (one,) = found(pods)
    assert words in one.problem


def test_admitted_pod_keeps_its_job() -> None:
    given = {names.JOB: "j" * 26, names.ATTEMPT: "2"}
    opened = pod("a", labels=given, annotations={names.WORKER: "3"}, gated=False)
    assert (opened.view.job, opened.view.attempt, opened.view.index) == ("j" * 26, 2, 3)
    (one,) = found([opened])
    assert (one.job, one.waiting, one.problem) == ("j" * 26, False, "")


def test_ungated_pod_is_no_job() -> None:
    assert found([pod("a", gated=False)]) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[{", "cannot be read"),
        ('[{"name": "a", "project": "p", "user": "u", "more": 1}]', "unknown field"),
        ('[{"name": "a", "project": "", "user": "u"}]', "needs a name, a project and a user"),
        (
            '[{"name": "a", "project": "p", "user": "u"}, {"name": "a", "project": "q", '
            '"user": "u"}]',
            "a is listed twice",
        ),
    ],
)
def test_invalid_namespace_list_is_rejected(text: str, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_namespaces(text)
    assert words in refused.value.message
