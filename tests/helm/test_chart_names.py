"""Names that the chart passes on match the names that its readers use; offline."""

from __future__ import annotations

import json
import re

import pytest

from benchpool_cluster import chart
from benchpool_cluster.chart import Rendered
from benchpool_scheduler.app.cluster_options import ClusterOptions
from benchpool_scheduler.contract import kubernetes as names
from benchpool_scheduler.service import DefaultAmounts

ROOT = chart.FOLDER.parents[1]


def test_chart_uses_contract_names() -> None:
    rendered = chart.render()
    namespace = rendered.the("Namespace", "benchpool-work")
    assert namespace["metadata"]["labels"][names.MANAGED] == "true"
    text = json.dumps(rendered.of("ValidatingAdmissionPolicy"))
    for word in (names.ADMISSION_GATE, names.ROLE, names.LEASE, names.JOB, f"{names.GROUP}/"):
        assert word in text
    used = set(re.findall(r"benchpool\.io/[a-z-]+", json.dumps(rendered.objects)))
    known = {v for v in vars(names).values() if isinstance(v, str) and v.startswith(names.GROUP)}
    assert used <= known, used - known
    (election,) = [
        rule["resourceNames"]
        for role in rendered.of("Role")
        for rule in role["rules"]
        if rule["resources"] == ["leases"] and "resourceNames" in rule
    ]
    assert election == [names.ELECTION_LEASE]


def test_two_releases_share_only_definitions() -> None:
    one, two = chart.render(), chart.render(release="second-benchpool", namespace="second")
    shared = {
        (o["kind"], o["metadata"]["name"], o["metadata"].get("namespace")) for o in one.objects
    } & {(o["kind"], o["metadata"]["name"], o["metadata"].get("namespace")) for o in two.objects}
    assert {kind for kind, _, _ in shared} == {"CustomResourceDefinition"}


def _environment(rendered: Rendered, part: str) -> set[str]:
    (container,) = rendered.the("Deployment", f"benchpool-{part}")["spec"]["template"]["spec"][
        "containers"
    ]
    return {one["name"] for one in container["env"]}


def test_scheduler_reads_every_given_variable() -> None:
    read = "".join(file.read_text() for file in (ROOT / "scheduler").rglob("app/*.py"))
    given = _environment(chart.render(), "scheduler")
    assert [one for one in given if one.startswith("BENCHPOOL_") and one not in read] == []


def test_scheduler_labels_match_its_deployment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rendered = chart.render(release="gpus")
    deployment = rendered.the("Deployment", "gpus-benchpool-scheduler")["spec"]
    (container,) = deployment["template"]["spec"]["containers"]
    for one in container["env"]:
        if "value" in one:
            monkeypatch.setenv(one["name"], one["value"])
    monkeypatch.setenv("BENCHPOOL_RELEASE_NAMESPACE", rendered.namespace)
    settings = ClusterOptions().runtime("work")
    assert settings.scheduler_labels == deployment["selector"]["matchLabels"]
    assert settings.scheduler_namespace == rendered.namespace


def test_job_taints_reach_scheduler() -> None:
    for taints, expected in (
        (None, "nvidia.com/gpu"),
        (["nvidia.com/gpu", "dedicated"], "nvidia.com/gpu,dedicated"),
    ):
        rendered = chart.render({} if taints is None else {"jobs": {"taints": taints}})
        pod = rendered.the("Deployment", "benchpool-scheduler")["spec"]["template"]["spec"]
        variables = {one["name"]: one.get("value") for one in pod["containers"][0]["env"]}
        assert variables["BENCHPOOL_TOLERATIONS"] == expected


def test_worker_requests_and_priority_class_reach_scheduler() -> None:
    jobs = {"cpusPerGpu": 4, "memoryGibPerGpu": 16.5, "cpuLimit": 2}
    rendered = chart.render({"jobs": jobs})
    pod = rendered.the("Deployment", "benchpool-scheduler")["spec"]["template"]["spec"]
    variables = {one["name"]: one.get("value") for one in pod["containers"][0]["env"]}
    (made,) = rendered.of("PriorityClass")
    assert (made["metadata"]["name"], made["preemptionPolicy"]) == ("benchpool", "Never")
    with pytest.MonkeyPatch.context() as there:
        for name in WORKERS:
            there.setenv(name, variables[name])
        there.setenv("BENCHPOOL_DEFAULT_IMAGE", "job")
        there.setenv("BENCHPOOL_JOB_IMAGE", "agent")
        there.setenv("BENCHPOOL_URL_FOR_WORKERS", "http://scheduler")
        options = ClusterOptions()
        settings = options.runtime("work")
    assert options.default_amounts == DefaultAmounts(cpus=4.0, memory_gib=16.5)
    assert settings.cpu_limit == 2.0
    assert settings.priority_class == "benchpool"


def test_existing_priority_class_is_used() -> None:
    rendered = chart.render({"priorityClass": {"create": False, "name": "batch"}})
    assert rendered.of("PriorityClass") == []
    hub = json.loads(rendered.the("Secret", "benchpool-hub")["stringData"]["hub.json"])
    assert hub["priority_class"] == "batch"


WORKERS = (
    "BENCHPOOL_CPUS_PER_GPU",
    "BENCHPOOL_MEMORY_GIB_PER_GPU",
    "BENCHPOOL_CPU_LIMIT",
    "BENCHPOOL_PRIORITY_CLASS",
)


def test_hub_gets_every_fact_and_variable() -> None:
    rendered = chart.render()
    config = rendered.the("Secret", "benchpool-hub")["stringData"]
    facts = set(json.loads(config["hub.json"]))
    # These two have a default in hub_config/kubernetes.py and hub_config/cluster.py.
    variables = _environment(rendered, "hub") | {"BENCHPOOL_SCHEDULER_URL", "BENCHPOOL_PUBLIC_URL"}
    for name in ("cluster.py", "kubernetes.py"):
        text = (ROOT / "hub_config" / name).read_text()
        assert set(re.findall(r'facts\["(\w+)"\]', text)) <= facts
        assert set(re.findall(r'environ(?:\.get\(|\[)"(\w+)"', text)) <= variables


@pytest.mark.parametrize(
    ("public_url", "options"),
    [
        ("", {"samesite": "Lax"}),
        ("http://gpus.example.org", {"samesite": "Lax"}),
        ("https://gpus.example.org", {"samesite": "Lax", "secure": True}),
    ],
)
def test_cookies_are_secure_with_https_address(public_url: str, options: dict[str, object]) -> None:
    rendered = chart.render({"hub": {"publicUrl": public_url}})
    facts = json.loads(rendered.the("Secret", "benchpool-hub")["stringData"]["hub.json"])
    assert facts["cookie_options"] == options
    pod = rendered.the("Deployment", "benchpool-scheduler")["spec"]["template"]["spec"]
    variables = {one["name"]: one.get("value") for one in pod["containers"][0]["env"]}
    assert json.loads(variables["JUPYTERHUB_COOKIE_OPTIONS"]) == options
