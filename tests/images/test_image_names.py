"""Image names agree with the chart, and archives get the same names."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from benchpool_cluster import chart

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def build() -> ModuleType:
    """Return the build script as a module."""
    spec = importlib.util.spec_from_file_location("images_build", ROOT / "images" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def asked() -> set[str]:
    """Return the images that a release with the chart's defaults uses."""
    found: set[str] = set()
    for one in chart.render().of("Deployment"):
        (container,) = one["spec"]["template"]["spec"]["containers"]
        found.add(container["image"])
        found |= {it["value"] for it in container["env"] if it["name"].endswith("_IMAGE")}
    return found


def test_built_images_match_chart_images(build: ModuleType) -> None:
    built = {f"benchpool/{part}:{build.version()}" for part in build.PARTS}
    assert asked() <= built
    assert built - asked() <= {f"benchpool/notebook:{build.version()}"}


def test_archive_gets_image_name_on_node(build: ModuleType) -> None:
    commands = build.how_to_use({"hub": Path("/x/hub.tar")}, build.version())
    name = f"benchpool/hub:{build.version()}"
    assert f"images import --index-name docker.io/{name} /x/hub.tar" in commands
    assert f"skopeo copy oci-archive:/x/hub.tar docker://REGISTRY/{name}" in commands
    assert "images.prefix: REGISTRY/benchpool/" in commands


def test_documentation_names_built_version(build: ModuleType) -> None:
    page = (ROOT / "docs/howto/install-cluster.md").read_text()
    assert f"benchpool/hub:{build.version()}" in page
    assert f"docker push registry.example.org/benchpool/$part:{build.version()}" in page
