"""Disruption budgets of the rendered chart, which decide the pods that a drain may evict."""

from __future__ import annotations

import pytest

from benchpool_cluster import chart


@pytest.mark.parametrize("part", ["hub", "proxy"])
def test_disruption_budget_blocks_drain_when_enabled(part: str) -> None:
    asked = chart.render({part: {"disruptionBudget": {"enabled": True}}})
    (budget,) = [
        one for one in asked.of("PodDisruptionBudget")
        if one["metadata"]["name"] == f"benchpool-{part}"
    ]  # fmt: skip
    pod = asked.the("Deployment", f"benchpool-{part}")["spec"]["template"]["metadata"]
    assert budget["spec"]["maxUnavailable"] == 0
    assert budget["spec"]["selector"]["matchLabels"].items() <= pod["labels"].items()
    names_by_default = {one["metadata"]["name"] for one in chart.render().of("PodDisruptionBudget")}
    assert f"benchpool-{part}" not in names_by_default
