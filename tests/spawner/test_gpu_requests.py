"""GPU requests of a pod are found wherever they are written; none bypasses the lease."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.contract.kubernetes import ADMISSION_GATE, GPU_RESOURCE, LEASE
from benchpool_scheduler.errors import BenchpoolError, InvalidInput, Refused
from benchpool_spawner.kube_profiles import open_to
from benchpool_spawner.kube_requests import (
    ContainerGpus,
    GpuRequest,
    GpuSettings,
    check_pod,
    gpu_request_of,
    gpu_requests,
)

KINDS = ["nvidia.com/*"]
MIG = "nvidia.com/mig-1g.10gb"


def container(name: str = "notebook", **resources: Any) -> dict[str, Any]:
    return {"name": name, "resources": resources}


def pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    about = {"labels": {LEASE: "l"}}
    gates = [{"name": ADMISSION_GATE}]
    return {
        "metadata": about,
        "spec": {"containers": list(containers), "schedulingGates": gates, **spec},
    }


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (pod(container(limits={GPU_RESOURCE: 1})), [("notebook", GPU_RESOURCE, 1)]),
        (pod(container(requests={MIG: "2"})), [("notebook", MIG, 2)]),
        (pod(container(limits={GPU_RESOURCE: "0", "cpu": "4"})), []),
        (
            pod(container(), container("side", limits={GPU_RESOURCE: 1})),
            [("side", GPU_RESOURCE, 1)],
        ),
        (
            pod(container(), initContainers=[container("init", limits={GPU_RESOURCE: 1})]),
            [("init", GPU_RESOURCE, 1)],
        ),
        (
            pod(container(), ephemeralContainers=[container("look", limits={GPU_RESOURCE: 1})]),
            [("look", GPU_RESOURCE, 1)],
        ),
    ],
)
def test_requests_are_found_in_every_container(
    asked: dict[str, Any], expected: list[tuple[str, str, int]]
) -> None:
    found = [(one.container, one.resource, one.count) for one in gpu_requests(asked, KINDS)]
    assert found == expected


@pytest.mark.parametrize("count", ["half", "0.5", "-1", True, None, "١"])
def test_invalid_gpu_count_is_rejected(count: object) -> None:
    with pytest.raises(InvalidInput, match="whole numbers"):
        gpu_requests(pod(container(limits={GPU_RESOURCE: count})), KINDS)


def test_different_limit_and_request_are_rejected() -> None:
    both = container(limits={GPU_RESOURCE: 2}, requests={GPU_RESOURCE: 1})
    with pytest.raises(InvalidInput, match="both numbers must be the same"):
        gpu_requests(pod(both), KINDS)


@pytest.mark.parametrize(
    ("chosen", "settings", "requests", "expected"),
    [
        (None, GpuSettings(), [], GpuRequest(0)),
        (2, GpuSettings(), [], GpuRequest(2)),
        (None, GpuSettings(gpus=1, models=("A100",)), [], GpuRequest(1, models=("A100",))),
        (None, GpuSettings(gpus=1, resource=MIG), [], GpuRequest(1, MIG)),
        (None, GpuSettings(), [ContainerGpus("notebook", MIG, 1)], GpuRequest(1, MIG)),
        (1, GpuSettings(gpus=1), [ContainerGpus("notebook", GPU_RESOURCE, 1)], GpuRequest(1)),
        (0, GpuSettings(gpus=2), [], GpuRequest(0)),
    ],
)
def test_gpu_request_follows_choice_profile_and_settings(
    chosen: int | None, settings: GpuSettings, requests: list[ContainerGpus], expected: GpuRequest
) -> None:
    assert gpu_request_of(chosen, (), settings, requests) == expected


@pytest.mark.parametrize(
    ("chosen", "settings", "requests", "kind"),
    [
        (2, GpuSettings(gpus=1), [], Refused),
        (None, GpuSettings(gpus=1), [ContainerGpus("notebook", GPU_RESOURCE, 2)], InvalidInput),
        (None, GpuSettings(), [ContainerGpus("side", GPU_RESOURCE, 1)], InvalidInput),
        (
            None,
            GpuSettings(),
            [ContainerGpus("notebook", GPU_RESOURCE, 1), ContainerGpus("notebook", MIG, 1)],
            InvalidInput,
        ),
    ],
)
def test_contradictory_gpu_requests_are_rejected(
    chosen: int | None,
    settings: GpuSettings,
    requests: list[ContainerGpus],
    kind: type[BenchpoolError],
) -> None:
    with pytest.raises(kind):
        gpu_request_of(chosen, (), settings, requests)


def test_models_are_common_to_user_and_profile() -> None:
    profile = GpuSettings(gpus=1, models=("A100", "H100"))
    assert gpu_request_of(None, ("H100",), profile, []).models == ("H100",)
    with pytest.raises(Refused, match="Choose one of its models"):
        gpu_request_of(None, ("V100",), profile, [])


AMOUNTS = st.dictionaries(st.sampled_from([GPU_RESOURCE, MIG, "cpu"]), st.integers(0, 3))
CONTAINERS = st.builds(
    lambda name, limits, requests: container(name, limits=limits, requests=requests),
    st.sampled_from(["notebook", "side"]),
    AMOUNTS,
    AMOUNTS,
)


@given(
    st.lists(CONTAINERS, min_size=1, max_size=3),
    st.lists(CONTAINERS, max_size=2),
    st.sampled_from([(GpuRequest(), None), (GpuRequest(1), "l"), (GpuRequest(2, MIG), "l")]),
)
def test_accepted_pod_has_exactly_leased_gpus(
    containers: list[dict[str, Any]],
    before: list[dict[str, Any]],
    leased: tuple[GpuRequest, str | None],
) -> None:
    made = pod(*containers, initContainers=before)
    asked, lease = leased
    try:
        check_pod(made, asked, lease, KINDS)
    except BenchpoolError:
        return
    total = {GPU_RESOURCE: 0, MIG: 0}
    for one in (*containers, *before):
        for name in total:
            part = one["resources"]
            total[name] += max(part["limits"].get(name, 0), part["requests"].get(name, 0))
    assert total == {GPU_RESOURCE: 0, MIG: 0} | ({asked.resource: asked.gpus} if lease else {})


def test_additional_scheduling_gate_is_accepted() -> None:
    gates = [{"name": "example.com/quota"}, {"name": ADMISSION_GATE}]
    check_pod(
        pod(container(limits={GPU_RESOURCE: 1}), schedulingGates=gates), GpuRequest(1), "l", KINDS
    )


def test_profiles_open_by_group_user_or_default() -> None:
    profiles: list[dict[str, Any]] = [
        {"display_name": "all"},
        {"display_name": "staff", "allowed_groups": ["staff"]},
        {"display_name": "susan", "allowed_users": ["susan"]},
        {"display_name": "nobody", "allowed_groups": []},
    ]
    names = [p["display_name"] for p in open_to("susan", frozenset({"staff"}), profiles)]
    assert names == ["all", "staff", "susan"]
    assert [p["display_name"] for p in open_to("joe", frozenset(), profiles)] == ["all"]
    with pytest.raises(
        Refused, match=r"None of the 1 server profiles .* your groups \(lab\), use one"
    ):
        open_to("joe", frozenset({"lab"}), profiles[3:])


def test_user_without_group_is_allowed_by_name() -> None:
    closed: dict[str, Any] = {"display_name": "large", "allowed_groups": ["staff"]}
    with pytest.raises(Refused, match=r"Ask an administrator to let you use one\.$"):
        open_to("joe", frozenset(), [closed])
    closed["allowed_users"] = ["joe"]
    assert open_to("joe", frozenset(), [closed]) == [closed]
