"""The chart as a dependency of a site's chart, with and without a condition."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from helm_python import Chart, HelmError

from benchpool_cluster import chart

DEPENDENCY = """
apiVersion: v2
name: site
version: 1.0.0
dependencies:
  - name: benchpool
    version: 0.2.0
    repository: file://../benchpool
    condition: benchpool.enabled
"""


def rendered(folder: Path, values: str) -> str:
    """Render a parent chart that depends on ours and return all its objects as text."""
    shutil.copytree(chart.FOLDER, folder / "charts" / "benchpool")
    (folder / "Chart.yaml").write_text(DEPENDENCY)
    (folder / "values.yaml").write_text(values)
    with Chart.load(folder) as site:
        return "".join(site.render(values={}, name="site", namespace="gpu").values())


@pytest.mark.parametrize("enabled", ["true", "null"])
def test_subchart_is_installed_when_condition_holds(tmp_path: Path, enabled: str) -> None:
    values = f"global: {{domain: example.org}}\nbenchpool: {{enabled: {enabled}}}\n"
    assert "kind: PoolSettings" in rendered(tmp_path, values)


def test_subchart_is_skipped_when_condition_fails(tmp_path: Path) -> None:
    assert rendered(tmp_path, "benchpool: {enabled: false}\n") == ""


VALUES = yaml.safe_load((chart.FOLDER / "values.yaml").read_text())


@pytest.mark.parametrize("section", sorted(set(VALUES) - {"fullnameOverride"}))
def test_removed_section_is_rejected_by_name(section: str) -> None:
    with pytest.raises(HelmError, match=f"missing property '{section}'"):
        chart.render({section: None})
