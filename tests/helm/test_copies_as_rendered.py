"""CronJobs copy what the API server does not have: which volumes, beside whom, and when not."""

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


def test_each_volume_has_a_job_that_copies_and_one_that_waits_to_put_back() -> None:
    rendered = chart.render()
    assert jobs(rendered) == {
        f"benchpool-{act}-{part}" for act in ("copy", "restore") for part in ("hub", "pool")
    }
    for part in ("hub", "pool"):
        assert spec(rendered, f"benchpool-copy-{part}")["suspend"] is False
        assert spec(rendered, f"benchpool-restore-{part}")["suspend"] is True


@pytest.mark.parametrize(("part", "owner"), [("hub", "hub"), ("pool", "scheduler")])
def test_a_copy_is_made_where_the_volume_is_and_put_back_where_nobody_uses_it(
    part: str, owner: str
) -> None:
    rendered = chart.render()
    labels = rendered.the("Deployment", f"benchpool-{owner}")["spec"]["selector"]["matchLabels"]
    (beside,) = pod(rendered, f"benchpool-copy-{part}")["affinity"]["podAffinity"][REQUIRED]
    assert beside["labelSelector"]["matchLabels"] == labels
    assert beside["topologyKey"] == "kubernetes.io/hostname"
    (apart,) = pod(rendered, f"benchpool-restore-{part}")["affinity"]["podAntiAffinity"][REQUIRED]
    assert apart["labelSelector"]["matchLabels"] == labels
    assert apart["topologyKey"] == "kubernetes.io/os"  # one for all nodes
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


def test_a_volume_for_many_nodes_is_copied_on_any() -> None:
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
def test_what_cannot_be_copied_here_has_no_job_and_the_notes_say_so(
    values: dict[str, Any], left: set[str]
) -> None:
    rendered = chart.render(values)
    assert {name.rpartition("-")[2] for name in jobs(rendered)} == left
    variables = rendered.the("Deployment", "benchpool-scheduler")["spec"]["template"]["spec"]
    (told,) = [
        one["value"]
        for one in variables["containers"][0]["env"]
        if one["name"] == "BENCHPOOL_COPIES"
    ]
    assert told == ",".join(f"benchpool-copy-{part}" for part in sorted(left))
    assert ("Copies of volumes" in rendered.notes) == bool(left)
    assert ("not copied" in rendered.notes) == ("pool" not in left)


@pytest.mark.parametrize(("claim", "place"), [("", "/volume/backups"), ("nfs", "/copies")])
def test_copies_lie_on_the_volume_itself_or_on_a_claim_of_the_sites_own(
    claim: str, place: str
) -> None:
    rendered = chart.render({"backup": {"claim": claim}})
    for job in jobs(rendered):
        (container,) = pod(rendered, job)["containers"]
        assert f"--copies={place}" in container["command"]
        claims = [one.get("persistentVolumeClaim") for one in pod(rendered, job)["volumes"]]
        assert ({"claimName": "nfs"} in claims) == bool(claim)
        assert ("/copies" in [it["mountPath"] for it in container["volumeMounts"]]) == bool(claim)
    # None that only a copy would mount: Helm would wait for it until the first one is made.
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
def test_the_notes_print_how_copies_are_put_back(
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


def test_names_of_jobs_are_no_longer_than_cronjobs_may_be() -> None:
    rendered = chart.render({"fullnameOverride": "n" * 40})
    assert {len(name) for name in jobs(rendered)} <= set(range(53))
    assert len(jobs(rendered)) == 4
