"""Images are called as the chart asks for them, and archives come to be called so too."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from benchpool_cluster import chart

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def build() -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("images_build", ROOT / "images" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def asked() -> set[str]:
    """The images that a release with the chart's defaults asks for."""
    found: set[str] = set()
    for one in chart.render().of("Deployment"):
        (container,) = one["spec"]["template"]["spec"]["containers"]
        found.add(container["image"])
        found |= {it["value"] for it in container["env"] if it["name"].endswith("_IMAGE")}
    return found


def test_what_is_built_by_default_is_what_the_chart_asks_for(build: ModuleType) -> None:
    built = {f"benchpool/{part}:{build.version()}" for part in build.PARTS}
    assert asked() <= built
    assert built - asked() <= {f"benchpool/notebook:{build.version()}"}


def test_an_archive_becomes_an_image_of_that_name_on_a_node(build: ModuleType) -> None:
    said = build.how_to_use({"hub": Path("/x/hub.tar")}, build.version())
    name = f"benchpool/hub:{build.version()}"
    assert f"images import --index-name docker.io/{name} /x/hub.tar" in said
    assert f"skopeo copy oci-archive:/x/hub.tar docker://REGISTRY/{name}" in said
    assert "images.prefix: REGISTRY/benchpool/" in said


def test_the_page_names_the_version_that_is_built(build: ModuleType) -> None:
    page = (ROOT / "docs/howto/install-cluster.md").read_text()
    assert f"benchpool/hub:{build.version()}" in page
    assert f"docker push registry.example.org/benchpool/$part:{build.version()}" in page
