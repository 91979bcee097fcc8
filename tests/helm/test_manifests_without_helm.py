"""Manifests for installs without Helm: equal to Helm's output, with tokens created once."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from benchpool_cluster import chart

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "helm" / "examples" / "site.yaml"


@pytest.fixture(scope="module")
def manifests() -> ModuleType:
    """Return the script as a module."""
    spec = importlib.util.spec_from_file_location("manifests", ROOT / "helm" / "manifests.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read(file: Path) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all(file.read_text()) if one]


def named(objects: Any) -> dict[tuple[str, str], dict[str, Any]]:
    return {(one["kind"], one["metadata"]["name"]): one for one in objects}


def test_files_match_rendering_of_helm(manifests: ModuleType, tmp_path: Path) -> None:
    words = ["-f", str(SITE), "--out", str(tmp_path), "--namespace", "lab", "--release", "pool"]
    assert manifests.main(words) == 0
    helms = named(
        chart.render(yaml.safe_load(SITE.read_text()), release="pool", namespace="lab").objects
    )
    ours = named(one for file in tmp_path.iterdir() for one in read(file))
    assert set(ours) == set(helms)
    secret = ("Secret", "pool-benchpool-secrets")
    for key, one in ours.items():
        if key != secret:
            there = helms[key]["metadata"].get("namespace", one["metadata"].get("namespace"))
            assert one == helms[key] | {"metadata": helms[key]["metadata"] | (
                {"namespace": there} if there else {}
            )}, key  # fmt: skip
    assert set(ours[secret]["data"]) == set(helms[secret]["data"])


def test_dependencies_come_first_and_hooks_are_separate(
    manifests: ModuleType, tmp_path: Path
) -> None:
    assert manifests.main(["--out", str(tmp_path)]) == 0
    kinds = [one["kind"] for one in read(tmp_path / "benchpool.yaml")]
    assert kinds[0] == "Namespace"
    assert max(i for i, kind in enumerate(kinds) if kind == "CustomResourceDefinition") < min(
        i for i, kind in enumerate(kinds) if kind in ("Deployment", "RoleBinding")
    )
    hooks = read(tmp_path / "preflight.yaml")
    assert "Job" in {one["kind"] for one in hooks}
    assert not any(manifests.is_hook(one) for one in read(tmp_path / "benchpool.yaml"))
    everything = [one for file in tmp_path.iterdir() for one in read(file)]
    placed = {one["kind"] for one in everything if "namespace" in one["metadata"]}
    assert not placed & manifests.OF_THE_CLUSTER


def test_tokens_are_created_once_and_private(manifests: ModuleType, tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.yaml"
    assert manifests.main(["--out", str(tmp_path)]) == 0
    first = secrets.read_text()
    assert not any(file.stat().st_mode & 0o077 for file in tmp_path.iterdir())
    assert manifests.main(["--out", str(tmp_path)]) == 0
    assert secrets.read_text() == first
    assert "server-secret" not in (tmp_path / "benchpool.yaml").read_text().replace(
        "key: server-secret", ""
    )


def test_existing_secret_is_used(
    manifests: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = tmp_path / "values.yaml"
    values.write_text("secrets: {existing: ours}\n")
    assert manifests.main(["-f", str(values), "--out", str(tmp_path / "out")]) == 0
    assert not (tmp_path / "out" / "secrets.yaml").exists()
    assert "secrets.yaml" not in capsys.readouterr().out


def test_later_values_file_overrides_earlier(
    manifests: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mirror, profiles = tmp_path / "mirror.yaml", tmp_path / "profiles.yaml"
    mirror.write_text("images: {prefix: mirror.lan/benchpool/, tag: 1.2.3}\n")
    override = "{display_name: R, kubespawner_override: {image: mirror.lan/r:4}}"
    profiles.write_text(f"images: {{tag: 1.2.4}}\nnotebooks: {{profiles: [{override}]}}\n")
    words = ["-f", str(mirror), "-f", str(profiles), "--images"]
    assert manifests.main(words) == 0
    parts = ("hub", "job", "notebook", "proxy", "scheduler")
    wanted = [f"mirror.lan/benchpool/{part}:1.2.4" for part in parts] + ["mirror.lan/r:4"]
    assert capsys.readouterr().out.split() == wanted


def test_invalid_values_are_reported(
    manifests: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = tmp_path / "values.yaml"
    values.write_text("shceduler: {}\n")
    assert manifests.main(["-f", str(values), "--out", str(tmp_path / "out")]) == 1
    assert "shceduler" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_page_and_makefile_use_existing_command(manifests: ModuleType) -> None:
    output = subprocess.run(
        ["make", "-n", "manifests", "ARGS=-f site.yaml"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "helm/manifests.py -f site.yaml" in output
    page = (ROOT / "docs/howto/install-cluster.md").read_text()
    for wanted in (
        'make manifests ARGS="-f site.yaml"',
        'make manifests ARGS="-f site.yaml --images"',
    ):
        assert wanted in page


def test_images_are_listed_with_mirror_names(
    manifests: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = tmp_path / "values.yaml"
    override = "{display_name: R, kubespawner_override: {image: quay.io/lab/r:4}}"
    values.write_text(
        "images: {prefix: ghcr.io/lab/, tag: 1.2.3, mirror: mirror.lan}\n"
        f"notebooks: {{profiles: [{override}]}}\n"
    )
    assert manifests.main(["-f", str(values), "--images"]) == 0
    pairs = dict(line.split() for line in capsys.readouterr().out.splitlines())
    assert pairs["quay.io/lab/r:4"] == "mirror.lan/lab/r:4"
    site = yaml.safe_load(values.read_text())
    rendered = manifests.images(manifests.rendered(site, "benchpool", "benchpool"), {})
    assert set(rendered) <= set(pairs.values())
    assert len(rendered) == len(pairs) - 1, "a profile's image is asked for by the hub alone"
