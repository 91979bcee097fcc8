"""Properties of the rendered chart; offline."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from helm_python import HelmError, lint

from benchpool_cluster import chart
from benchpool_cluster.chart import Manifest, Rendered
from benchpool_scheduler import __version__, configuration
from benchpool_scheduler.contract import kubernetes as names
from benchpool_scheduler.notifications import site as notifications

ROOT = chart.FOLDER.parents[1]
NOTIFICATIONS = "BENCHPOOL_NOTIFICATIONS"
VALUES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "a site": {
        "pool": {"version": 1, "build": {"users": {"susan": 1}}, "projects": [{"name": "susan"}]},
        "hub": {
            "publicUrl": "https://gpus.example.org",
            "authenticator": {"class": "github", "admins": ["susan"], "allowAll": False},
            "config": {"GitHubOAuthenticator": {"client_id": "x"}},
            "extraConfig": {"10-more": "c.Spawner.debug = True"},
            "database": {"url": "postgresql+psycopg2://hub@db/hub"},
        },
        "telemetry": {"database": {"url": "postgresql+psycopg2://benchpool@db/use"}},
        "proxy": {"ingress": {"enabled": True, "host": "gpus.example.org", "tlsSecret": "tls"}},
        "images": {"pullSecrets": ["registry"], "tag": "1.2.3"},
        "workspace": {"gpuFence": 8, "name": "research"},
        "notebooks": {"tolerations": [{"operator": "Exists"}]},
        "scheduler": {"objects": "s3://bucket", "extraEnv": [{"name": "KEY", "value": "x"}]},
        "networkPolicy": {
            "dns": {"ipBlocks": ["10.0.0.10/32"]},
            "proxyFrom": [{"ipBlock": {"cidr": "10.1.0.0/16"}}],
            "extraEgress": [{"to": [{"ipBlock": {"cidr": "10.2.0.0/16"}}]}],
        },
    },
    "an existing hub": {
        "hub": {
            "enabled": False,
            "existing": {"namespace": "jupyter", "apiUrl": "http://hub.jupyter:8081/hub/api"},
        },
    },
    "as little as can be": {
        "policies": {"enabled": False},
        "networkPolicy": {"enabled": False},
        "preflight": {"enabled": False},
        "scheduler": {"replicas": 1},
        "workspace": {"create": False},
    },
}


@pytest.fixture(params=VALUES)
def rendered(request: pytest.FixtureRequest) -> Rendered:
    return chart.render(VALUES[request.param])


def pods(rendered: Rendered) -> Iterator[tuple[str, Manifest]]:
    """Yield the spec of every pod with the name of its controller."""
    for one in rendered.objects:
        template = template_of(one)
        if template is not None:
            yield one["metadata"]["name"], template["spec"]


def template_of(one: Manifest) -> Manifest | None:
    """Return the pod template of an object, or None if the object creates no pods."""
    spec = one["spec"]["jobTemplate"]["spec"] if one["kind"] == "CronJob" else one.get("spec", {})
    found: Manifest | None = spec.get("template")
    return found if one["kind"] in {"Deployment", "Job", "CronJob"} else None


# ----------------------------------------------------------------- well-formed


@pytest.mark.parametrize("values", VALUES)
def test_chart_passes_lint(values: str) -> None:
    found = lint(chart.FOLDER, values=VALUES[values], strict=True, namespace="n")
    complaints = [one for one in found["messages"] if "icon" not in json.dumps(one)]
    assert not complaints


@pytest.fixture
def kubernetes_validate(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the module with the schemas of Kubernetes.

    It is installed outside the import path of benchpool's own processes.
    """
    monkeypatch.setattr(sys, "path", [*sys.path, str(Path(sys.prefix) / "schemas")])
    return importlib.import_module("kubernetes_validate")


def test_objects_match_schemas(rendered: Rendered, kubernetes_validate: Any) -> None:
    for one in rendered.objects:
        if one["apiVersion"] != names.API_VERSION and one["kind"] != "CustomResourceDefinition":
            kubernetes_validate.validate(one, "1.34", strict=True)


def test_object_names_are_unique(rendered: Rendered) -> None:
    named = [
        (one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"])
        for one in rendered.objects
    ]
    assert len(named) == len(set(named))


def test_chart_version_matches_package() -> None:
    about = yaml.safe_load((chart.FOLDER / "Chart.yaml").read_text())
    assert about["version"] == about["appVersion"] == __version__


@pytest.mark.parametrize("policy", ["names", "guard"])
def test_policies_guard_pod_groups(policy: str) -> None:
    spec = chart.render().the("ValidatingAdmissionPolicy", f"benchpool-{policy}")["spec"]
    rules = spec["matchConstraints"]["resourceRules"]
    (ours,) = [one for one in rules if one["apiGroups"] == ["scheduling.k8s.io"]]
    # PriorityClasses are excluded: they are cluster-scoped.
    assert {"workloads", "podgroups"} <= set(ours["resources"])
    assert ours["scope"] == "Namespaced"
    assert "*" not in ours["resources"]


# ----------------------------------------------------------------- values


def test_values_match_schema() -> None:
    schema = json.loads((chart.FOLDER / "values.schema.json").read_text())
    values = yaml.safe_load((chart.FOLDER / "values.yaml").read_text())

    def compare(described: Manifest, given: Manifest, path: str) -> None:
        known = set(described["properties"]) - (set() if path else {"global", "enabled"})
        assert known == set(given), f"{path or 'values.yaml'}: {known ^ set(given)}"
        for key, inner in described["properties"].items():
            if inner.get("additionalProperties") is False:
                compare(inner, given[key], f"{path}.{key}".lstrip("."))

    compare(schema, values, "")
    jsonschema.validate(values, schema)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"shceduler": {}}, "shceduler"),
        ({"scheduler": {"replicas": 0}}, "replicas"),
        ({"scheduler": {"replicas": "two"}}, "replicas"),
        ({"hub": {"publicUrl": "gpus.example.org"}}, "publicUrl"),
        ({"networkPolicy": {"deniedRanges": ["10.0.0.0"]}}, "deniedRanges"),
        ({"policies": {"userPrefix": "it's"}}, "userPrefix"),
        ({"pool": {"version": 2}}, "version"),
        ({"workspace": {"podSecurity": "none"}}, "podSecurity"),
        ({"notebooks": {"storage": {"size": "ten"}}}, "size"),
    ],
)
def test_invalid_values_are_rejected(values: Manifest, message: str) -> None:
    with pytest.raises(HelmError, match=message):
        chart.render(values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"hub": {"enabled": False}}, "hub.existing.apiUrl is required"),
        ({"proxy": {"ingress": {"enabled": True}}}, "proxy.ingress.host is required"),
    ],
)
def test_missing_value_is_named(values: Manifest, message: str) -> None:
    with pytest.raises(HelmError, match=re.escape(message)):
        chart.render(values)


def test_example_site_has_at_most_20_lines() -> None:
    text = (chart.FOLDER.parent / "examples" / "site.yaml").read_text()
    assert len(text.splitlines()) <= 20
    rendered = chart.render(yaml.safe_load(text))
    assert "https://gpus.example.org" in rendered.notes
    pool = rendered.the("ConfigMap", "benchpool-pool")["data"]["benchpool.yaml"]
    configuration.load(pool, "benchpool.yaml")


# ----------------------------------------------------------------- pods


def test_pods_meet_restricted_standard(rendered: Rendered) -> None:
    for name, spec in pods(rendered):
        security = spec["securityContext"]
        assert security["runAsNonRoot"] is True, name
        assert security["runAsUser"] >= 1000, name
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert spec["enableServiceLinks"] is False, name
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec), name
        kinds = {key for one in spec["volumes"] for key in one} - {"name"}
        assert kinds <= {"configMap", "secret", "emptyDir", "persistentVolumeClaim"}, name
        for container in spec["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert "memory" in container["resources"]["limits"], name


def test_only_api_server_clients_get_token(rendered: Rendered) -> None:
    with_token = {name for name, spec in pods(rendered) if spec["automountServiceAccountToken"]}
    expected = {"benchpool-scheduler", "benchpool-hub", "benchpool-preflight"}
    assert with_token == expected & {name for name, _ in pods(rendered)}
    assert all(not one["automountServiceAccountToken"] for one in rendered.of("ServiceAccount"))


def test_credentials_are_in_secrets_only(rendered: Rendered) -> None:
    for one in rendered.objects:
        if one["kind"] != "Secret":
            assert "postgresql+psycopg2" not in json.dumps(one)
    for _, spec in pods(rendered):
        for container in spec["containers"]:
            for variable in container.get("env", ()):
                if re.search("TOKEN|SECRET$|PASSWORD|CRYPT", variable["name"]):
                    assert "secretKeyRef" in variable["valueFrom"], variable["name"]


def test_secret_has_every_key_read() -> None:
    server = {"telemetry": {"database": {"url": "postgresql+psycopg2://benchpool:x@db/use"}}}
    rendered = chart.render(server)
    (made,) = [one for one in rendered.of("Secret") if one["metadata"]["name"].endswith("-secrets")]
    read = {
        variable["valueFrom"]["secretKeyRef"]["key"]
        for _, spec in pods(rendered)
        for container in spec["containers"]
        for variable in container.get("env", ())
        if "secretKeyRef" in variable.get("valueFrom", {})
    }
    assert read == set(made["data"])
    page = (ROOT / "docs/howto/install-cluster.md").read_text()
    assert [key for key in made["data"] if f"`{key}`" not in page] == []


def test_services_and_policies_select_existing_pods(rendered: Rendered) -> None:
    labels = [
        template["metadata"]["labels"]
        for one in rendered.objects
        if (template := template_of(one)) is not None
    ]
    for service in rendered.of("Service"):
        wanted = service["spec"]["selector"].items()
        assert any(wanted <= own.items() for own in labels), service["metadata"]["name"]
    for one in rendered.of("NetworkPolicy"):
        if one["metadata"]["namespace"] == rendered.namespace:
            selector = one["spec"]["podSelector"]
            wanted = selector.get("matchLabels", {}).items()
            among = {it["key"]: it["values"] for it in selector.get("matchExpressions", ())}
            assert any(
                wanted <= own.items() and all(own.get(key) in among[key] for key in among)
                for own in labels
            ), one["metadata"]["name"]


def test_notification_settings_are_mounted_from_secret(tmp_path: Path) -> None:
    settings = {"mail": {"host": "mx", "sender": "a@b.org", "domains": ["b.org"]}, "per_hour": 3}
    before, after = chart.render(), chart.render({"notifications": {"site": settings}})
    assert not [one for one in before.of("Secret") if "notif" in one["metadata"]["name"]]
    secret = after.the("Secret", "benchpool-notifications")
    file = tmp_path / "notifications.yaml"
    file.write_text(secret["stringData"][file.name])
    assert notifications.load(file).per_hour == 3
    templates = [
        one.the("Deployment", "benchpool-scheduler")["spec"]["template"] for one in (before, after)
    ]
    assert templates[0]["metadata"] != templates[1]["metadata"], "nobody reads it again"
    assert mounted(templates[1]["spec"]) == (secret["metadata"]["name"], file.name)
    own = {"notifications": {"site": settings, "existing": "mine"}}
    rendered = chart.render(own)
    assert not [one for one in rendered.of("Secret") if "notif" in one["metadata"]["name"]]
    template = rendered.the("Deployment", "benchpool-scheduler")["spec"]["template"]
    assert mounted(template["spec"]) == ("mine", file.name)


def mounted(spec: dict[str, Any]) -> tuple[str, str]:
    """Return the secret of the notification settings and the file name that the scheduler reads."""
    (container,) = spec["containers"]
    (path,) = (Path(it["value"]) for it in container["env"] if it["name"] == NOTIFICATIONS)
    (mount,) = (it for it in container["volumeMounts"] if it["mountPath"] == str(path.parent))
    (volume,) = (it for it in spec["volumes"] if it["name"] == mount["name"])
    assert volume["secret"]["optional"]
    return volume["secret"]["secretName"], path.name


# ----------------------------------------------------------------- upgrade and uninstall


def test_uninstall_keeps_volumes_definitions_and_work_namespace() -> None:
    rendered = chart.render()
    kept = {
        (one["kind"], one["metadata"]["name"])
        for one in rendered.objects
        if one["metadata"].get("annotations", {}).get("helm.sh/resource-policy") == "keep"
    }
    definitions = {("CustomResourceDefinition", f"{n}.{names.GROUP}") for n in RESOURCES}
    assert kept == definitions | {
        ("Namespace", "benchpool-work"),
        ("PersistentVolumeClaim", "benchpool-hub"),
        ("PersistentVolumeClaim", "benchpool-scheduler"),
    }


RESOURCES = {"trainingjobs", "buildleases", "projects", "nodepools", "poolsettings"}


def test_objects_have_no_finalizers(rendered: Rendered) -> None:
    assert all("finalizers" not in one["metadata"] for one in rendered.objects)


def test_definitions_are_part_of_upgrades() -> None:
    # Helm installs a folder crds/ once and never updates it.
    assert not (chart.FOLDER / "crds").exists()
    rendered = chart.render()
    assert {one["spec"]["names"]["plural"] for one in rendered.of("CustomResourceDefinition")} == (
        RESOURCES
    )


def test_unrelated_upgrade_does_not_restart_proxy() -> None:
    before = chart.render(VALUES["defaults"])
    after = chart.render({"hub": {"config": {"A": {"b": 1}}}, "pool": {"version": 1, "build": {}}})
    name = "benchpool-proxy"
    assert before.the("Deployment", name)["spec"] == after.the("Deployment", name)["spec"]
    for part in ("benchpool-hub", "benchpool-scheduler"):
        templates = [one.the("Deployment", part)["spec"]["template"] for one in (before, after)]
        assert templates[0] != templates[1], f"{part} does not hear of the change"


def test_deployment_selectors_are_stable() -> None:
    before, after = chart.render(), chart.render({"images": {"tag": "9.9.9"}})
    for one in before.of("Deployment"):
        twin = after.the("Deployment", one["metadata"]["name"])
        assert one["spec"]["selector"] == twin["spec"]["selector"]
        assert "app.kubernetes.io/version" not in one["spec"]["selector"]["matchLabels"]


# ----------------------------------------------------------------- network policies


def test_work_pods_are_isolated_by_default() -> None:
    rendered = chart.render()
    deny = rendered.the("NetworkPolicy", "benchpool-default-deny")
    assert deny["metadata"]["namespace"] == "benchpool-work"
    assert deny["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


@pytest.mark.parametrize("name", ["benchpool-notebooks", "benchpool-workers"])
def test_metadata_and_private_addresses_are_blocked(name: str) -> None:
    policy = chart.render().the("NetworkPolicy", name)
    blocks = [
        peer["ipBlock"]
        for rule in policy["spec"]["egress"]
        for peer in rule["to"]
        if "ipBlock" in peer
    ]
    assert {block["cidr"] for block in blocks} == {"0.0.0.0/0", "::/0"}
    excepted = {one for block in blocks for one in block["except"]}
    assert {"169.254.0.0/16", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"} <= excepted


def test_internet_access_can_be_disabled() -> None:
    rendered = chart.render({"networkPolicy": {"internet": False}})
    policy = rendered.the("NetworkPolicy", "benchpool-notebooks")
    assert "ipBlock" not in json.dumps(policy["spec"])


# ----------------------------------------------------------------- notes


def test_notes_show_address_login_and_commands() -> None:
    notes = chart.render().notes
    for wanted in (
        "port-forward service/benchpool-proxy-public",
        "as admin with the password",
        "kubectl get poolsettings\n",
        "kubectl -n benchpool-work get trainingjobs,buildleases",
        "logs job/benchpool-preflight",
        "No project has a quota yet",
    ):
        assert wanted in notes
    assert "https://gpus.example.org" in chart.render(VALUES["a site"]).notes
    assert "the overlay" in chart.render(VALUES["an existing hub"]).notes
    assert "kubectl get poolsettings,projects\n" in chart.render(VALUES["a site"]).notes
