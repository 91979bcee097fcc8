"""CronJobs that copy data outside the API server: volumes, placement and exceptions."""

from __future__ import annotations

from typing import Any

import pytest

from benchpool_cluster import chart
from benchpool_cluster.chart import Rendered

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def jobs(rendered: Rendered) -> set[str]:
    return {one["metadata"]["name"] for one in rendered.of("CronJob")}


def spec(rendered: Rendered, name: str) -> dict[str, Any]:
    found: dict[str, Any] = rendered.the("CronJob", name)["spec"]
    return found


def pod(rendered: Rendered, name: str) -> dict[str, Any]:
    found: dict[str, Any] = spec(rendered, name)["jobTemplate"]["spec"]["template"]["spec"]
    return found


def test_volume_has_copy_and_suspended_restore_job() -> None:
    rendered = chart.render()
    assert jobs(rendered) == {
        f"benchpool-{act}-{part}" for act in ("copy", "restore") for part in ("hub", "pool")
    }
    for part in ("hub", "pool"):
        assert spec(rendered, f"benchpool-copy-{part}")["suspend"] is False
        assert spec(rendered, f"benchpool-restore-{part}")["suspend"] is True


@pytest.mark.parametrize(("part", "owner"), [("hub", "hub"), ("pool", "scheduler")])
def test_copy_runs_beside_owner_and_restore_apart(part: str, owner: str) -> None:
    rendered = chart.render()
    labels = rendered.the("Deployment", f"benchpool-{owner}")["spec"]["selector"]["matchLabels"]
    (beside,) = pod(rendered, f"benchpool-copy-{part}")["affinity"]["podAffinity"][REQUIRED]
    assert beside["labelSelector"]["matchLabels"] == labels
    assert beside["topologyKey"] == "kubernetes.io/hostname"
    (apart,) = pod(rendered, f"benchpool-restore-{part}")["affinity"]["podAntiAffinity"][REQUIRED]
    assert apart["labelSelector"]["matchLabels"] == labels
    assert apart["topologyKey"] == "kubernetes.io/os"  # same value on all nodes
    claims = [
        one.get("persistentVolumeClaim")
        for one in pod(rendered, f"benchpool-copy-{part}")["volumes"]
    ]
    mounted = rendered.the("Deployment", f"benchpool-{owner}")["spec"]["template"]["spec"][
        "volumes"
    ]
    assert {"claimName": f"benchpool-{owner}"} in claims
    assert {"claimName": f"benchpool-{owner}"} in [
        one.get("persistentVolumeClaim") for one in mounted
    ]


def test_shared_volume_is_copied_on_any_node() -> None:
    rendered = chart.render({"scheduler": {"storage": {"accessMode": "ReadWriteMany"}}})
    assert "affinity" not in pod(rendered, "benchpool-copy-pool")


@pytest.mark.parametrize(
    ("values", "left"),
    [
        ({"hub": {"database": {"url": "postgresql+psycopg2://hub@db/hub"}}}, {"pool"}),
        ({"hub": {"enabled": False, "existing": {"apiUrl": "http://hub/hub/api"}}}, {"pool"}),
        (
            {"scheduler": {"replicas": 1, "storage": {"accessMode": "ReadWriteOncePod"}}},
            {"hub"},
        ),
        ({"backup": {"enabled": False}}, set()),
    ],
)
def test_volume_without_copy_has_no_job_and_is_noted(
    values: dict[str, Any], left: set[str]
) -> None:
    rendered = chart.render(values)
    assert {name.rpartition("-")[2] for name in jobs(rendered)} == left
    variables = rendered.the("Deployment", "benchpool-scheduler")["spec"]["template"]["spec"]
    (copies,) = [
        one["value"]
        for one in variables["containers"][0]["env"]
        if one["name"] == "BENCHPOOL_COPIES"
    ]
    assert copies == ",".join(f"benchpool-copy-{part}" for part in sorted(left))
    assert ("Volumes are copied by" in rendered.notes) == bool(left)
    assert ("not copied" in rendered.notes) == ("pool" not in left)


@pytest.mark.parametrize(("claim", "place"), [("", "/volume/backups"), ("nfs", "/copies")])
def test_copies_use_own_volume_or_given_claim(claim: str, place: str) -> None:
    rendered = chart.render({"backup": {"claim": claim}})
    for job in jobs(rendered):
        (container,) = pod(rendered, job)["containers"]
        assert f"--copies={place}" in container["command"]
        claims = [one.get("persistentVolumeClaim") for one in pod(rendered, job)["volumes"]]
        assert ({"claimName": "nfs"} in claims) == bool(claim)
        assert ("/copies" in [it["mountPath"] for it in container["volumeMounts"]]) == bool(claim)
    # No claim is mounted by a copy job only: Helm would wait for it until the first copy.
    assert {one["metadata"]["name"] for one in rendered.of("PersistentVolumeClaim")} == {
        "benchpool-hub",
        "benchpool-scheduler",
    }


@pytest.mark.parametrize(
    ("values", "owners"),
    [
        ({}, {"hub": 1, "scheduler": 2}),
        ({"hub": {"database": {"url": "postgresql+psycopg2://hub@db/hub"}}}, {"scheduler": 2}),
        ({"scheduler": {"storage": {"accessMode": "ReadWriteMany"}, "replicas": 3}}, None),
    ],
)
def test_notes_print_restore_commands(
    values: dict[str, Any], owners: dict[str, int] | None
) -> None:
    rendered = chart.render(values)
    owners = owners or {"hub": 1, "scheduler": 3}
    deployments = [f"benchpool-{it}" for it in owners]
    kubectl = f"kubectl -n {rendered.namespace}"
    assert f"  {kubectl} scale deployment {' '.join(deployments)} --replicas=0\n" in rendered.notes
    for owner, count in owners.items():
        assert f"  {kubectl} scale deployment benchpool-{owner} --replicas={count}\n" in (
            rendered.notes + "\n"
        )
        job = f"benchpool-restore-{'hub' if owner == 'hub' else 'pool'}"
        assert f"  {kubectl} create job --from=cronjob/{job} {job}-$now\n" in rendered.notes
        assert spec(rendered, job)
    scheduler = rendered.the("Deployment", "benchpool-scheduler")["spec"]["template"]["spec"]
    (release,) = [it for it in scheduler["containers"][0]["env"] if it["name"].endswith("RELEASE")]
    assert release["value"] == rendered.release


def test_job_names_fit_cronjob_limit() -> None:
    rendered = chart.render({"fullnameOverride": "n" * 40})
    assert {len(name) for name in jobs(rendered)} <= set(range(53))
    assert len(jobs(rendered)) == 4
