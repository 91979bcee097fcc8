"""Monitoring objects of the chart: scrape target, alerts, and a dashboard of known metrics."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import promql_parser
import pytest
import yaml
from prometheus_client.core import Metric

from benchpool_cluster import chart
from benchpool_cluster.chart import Manifest
from benchpool_scheduler.api.metrics import PoolFigures, Traffic
from benchpool_scheduler.service import Metrics
from benchpool_scheduler.service.housekeeping.disk import DiskRoom
from benchpool_scheduler.service.pool.figures import MeasuredGpu
from benchpool_scheduler.telemetry.samples import GpuSample

ROOT = chart.FOLDER.parents[1]
GUIDE = (ROOT / "docs/howto/monitor.md").read_text()
ALL = {
    "monitoring": {
        "from": [{"namespaceSelector": {"matchLabels": {"team": "watch"}}}],
        "serviceMonitor": {"enabled": True, "labels": {"release": "stack"}},
        "rules": {"enabled": True},
        "dashboard": {"enabled": True},
    }
}


def alerts() -> list[Manifest]:
    """Return the alerts of the chart."""
    (rule,) = chart.render(ALL).of("PrometheusRule")
    return [one for group in rule["spec"]["groups"] for one in group["rules"]]


def panels() -> list[Manifest]:
    """Return the panels of the dashboard."""
    folder = chart.render(ALL).the("ConfigMap", "benchpool-dashboard")
    found: list[Manifest] = json.loads(folder["data"]["benchpool.json"])["panels"]
    return found


def expressions() -> Iterable[str]:
    """Yield all Prometheus expressions of the alerts and the dashboard."""
    yield from (one["expr"] for one in alerts())
    yield from (target["expr"] for panel in panels() for target in panel["targets"])


def exported() -> dict[str, set[str]]:
    """Return the scheduler's metrics: their names with their labels."""
    some = {"x": 1.0}
    sample = GpuSample(0.0, 10.0, "GPU-a", 0.5, 0.2, 1.0, 2.0, 300.0, 9.0, 50.0)
    figures = Metrics(
        jobs={("vision", "running"): 1},
        jobs_ended={("vision", "failed"): 1},
        gpus={"free": 1},
        refusals={"no-gpus": 1},
        preemptions={"vision": 1},
        lost_gpu_s=some,
        disk=DiskRoom(1, 2),
        breaches={"I1": 1},
        past_use_gpu_s=some,
        use=(MeasuredGpu("gpu-1", 0, "H200", sample),),
    )
    traffic = Traffic()
    traffic.count("submit", 201, 0.1)
    families: list[Metric] = [*PoolFigures(figures).collect(), *traffic.registry.collect()]
    return {sample.name: set(sample.labels) for family in families for sample in family.samples}


def selectors(node: Any) -> Iterable[Any]:
    """Yield the metric selectors of an expression."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node
        return
    for name in ("expr", "lhs", "rhs", "args", "vector_selector", "vs", "param"):
        inner = getattr(node, name, None)
        for one in inner if isinstance(inner, list) else [inner]:
            if one is not None and not isinstance(one, str):
                yield from selectors(one)


def test_monitoring_is_off_by_default() -> None:
    rendered = chart.render()
    assert rendered.of("ServiceMonitor") == rendered.of("PrometheusRule") == []
    assert not [one for one in rendered.of("ConfigMap") if "dashboard" in one["metadata"]["name"]]


def test_service_monitor_selects_scheduler_with_its_token() -> None:
    rendered = chart.render(ALL)
    (monitor,) = rendered.of("ServiceMonitor")
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    (service,) = [
        one for one in rendered.of("Service") if wanted <= one["metadata"]["labels"].items()
    ]
    assert service["metadata"]["name"] == "benchpool-scheduler"
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    assert endpoint["path"] == "/services/benchpool/api/v1/metrics"
    assert monitor["metadata"]["labels"]["release"] == "stack"
    shown = endpoint["authorization"]["credentials"]
    assert shown["key"] in rendered.the("Secret", shown["name"])["data"]
    pod = rendered.the("Deployment", "benchpool-scheduler")["spec"]["template"]["spec"]
    variables = {one["name"]: one for one in pod["containers"][0]["env"]}
    known = variables["BENCHPOOL_METRICS_TOKEN"]["valueFrom"]["secretKeyRef"]
    assert (known["name"], known["key"], known["optional"]) == (*shown.values(), True)


def test_monitoring_peer_reaches_scheduler() -> None:
    peer = ALL["monitoring"]["from"][0]  # type: ignore[index]
    for values, there in (({}, False), (ALL, True)):
        policy = chart.render(values).the("NetworkPolicy", "benchpool-scheduler")
        assert (peer in policy["spec"]["ingress"][0]["from"]) is there


@pytest.mark.parametrize("expression", sorted(set(expressions())))
def test_queries_use_only_exported_metrics_and_labels(expression: str) -> None:
    known = exported()
    read = list(selectors(promql_parser.parse(expression)))
    assert {one.name for one in read} == set(re.findall(r"benchpool_\w+", expression))
    for one in read:
        name = one.name
        assert name in known, f"no figure is called {name}"
        assert {matcher.name for matcher in one.matchers.matchers} <= known[name]
    grouped = {
        label.strip()
        for group in re.findall(r"by \(([^)]*)\)", expression)
        for label in group.split(",")
    }
    assert grouped <= set().union(*(known[one.name] for one in read)) | {"le"}


def test_alert_has_severity_summary_and_guide_row() -> None:
    found = alerts()
    assert len({one["alert"] for one in found}) == len(found) >= 10
    for one in found:
        assert one["labels"]["severity"] in {"critical", "warning"}
        assert one["annotations"]["summary"].endswith(".")
        assert f"| `{one['alert']}` |" in GUIDE
    named = set(re.findall(r"^\| `(Benchpool\w+)` \|", GUIDE, re.MULTILINE))
    assert named == {one["alert"] for one in found}


def test_panels_have_titles_and_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert panel["title"]
        assert max(x for x, _ in cells) < 24
        assert not cells & taken
        taken |= cells


def test_alerts_file_matches_rendered_rules() -> None:
    rules = yaml.safe_load((chart.FOLDER / "files/alerts.yaml").read_text())
    assert [one for group in rules["groups"] for one in group["rules"]] == alerts()
