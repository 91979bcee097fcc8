"""Contents of the shipped images, each checked as the user it runs as."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from benchpool_cluster import product_images
from benchpool_cluster.product_images import PARTS, Running

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(1800)]

# Maximum size of each image archive, in MiB.
LARGEST = {"hub": 160, "proxy": 120, "scheduler": 180, "notebook": 260, "job": 70}


@pytest.fixture(scope="module")
def images() -> Iterator[dict[str, Running]]:
    """Yield a running container of every image."""
    with ExitStack() as stack:
        yield {
            part: stack.enter_context(product_images.run(product_images.build(part)))
            for part in PARTS
        }


@pytest.mark.parametrize("part", PARTS)
def test_image_user_is_not_root_and_cannot_install(images: dict[str, Running], part: str) -> None:
    assert images[part].run("id", "-u").strip() == "1000"
    assert images[part].run("sh", "-c", "command -v pip npm || true").strip() == ""


@pytest.mark.parametrize("part", PARTS)
def test_image_size_is_limited(images: dict[str, Running], part: str) -> None:
    assert images[part].built.archive.stat().st_size < LARGEST[part] * 1024 * 1024


@pytest.mark.parametrize(
    ("part", "path", "package"),
    [
        ("hub", "/opt/benchpool/sbom/python.cdx.json", "jupyterhub"),
        ("scheduler", "/opt/benchpool/sbom/python.cdx.json", "kubernetes"),
        ("notebook", "/opt/benchpool/sbom/python.cdx.json", "jupyterlab"),
        ("proxy", "/opt/proxy/sbom/npm.cdx.json", "configurable-http-proxy"),
    ],
)
def test_image_contains_its_bill_of_materials(
    images: dict[str, Running], part: str, path: str, package: str
) -> None:
    found = json.loads(images[part].run("cat", path))
    assert found["bomFormat"] == "CycloneDX"
    assert package in {one["name"] for one in found["components"]}


def test_hub_image_has_spawner_logins_and_databases(images: dict[str, Running]) -> None:
    program = "import benchpool_spawner.kube, kubespawner, oauthenticator, psycopg2; print('whole')"
    assert "whole" in images["hub"].run("python3", "-c", program)
    assert re.search(r"^[56]\.", images["hub"].run("jupyterhub", "--version"))


def test_scheduler_image_starts(images: dict[str, Running]) -> None:
    output = images["scheduler"].run("python3", "-m", "benchpool_scheduler.app", "--help")
    assert "SchedulerApp" in output
    program = "import benchpool_scheduler.runtime.kubernetes, benchpool_scheduler.store.kubernetes"
    images["scheduler"].run("python3", "-c", f"{program}, apprise, cronsim, optuna")


def test_notebook_login_shell_finds_benchpool(images: dict[str, Running]) -> None:
    found = images["notebook"].run("bash", "-lc", "command -v benchpool python3")
    assert found.split() == ["/opt/benchpool/bin/benchpool", "/opt/benchpool/bin/python3"]


def test_notebook_image_enables_extension(images: dict[str, Running]) -> None:
    listing = images["notebook"].run("sh", "-c", "HOME=/tmp jupyter labextension list 2>&1")
    assert re.search(r"@benchpool/lab.*enabled.*OK", listing)
    assert re.search(r"^[56]\.", images["notebook"].run("jupyterhub-singleuser", "--version"))
    images["notebook"].run("python3", "-c", "import benchpool, ipykernel, nbclient, ipywidgets")


def test_notebook_image_disables_news(images: dict[str, Running]) -> None:
    program = (
        "from jupyter_core.paths import jupyter_config_path as p; from pathlib import Path;"
        "print([f.read_text() for d in p() for f in Path(d).glob('labconfig/*.json')])"
    )
    found = images["notebook"].run("python3", "-c", program)
    assert '"fetchNews": "false"' in found


def test_job_image_contains_agent(images: dict[str, Running]) -> None:
    program = "import zipfile; print(zipfile.ZipFile('/opt/benchpool/agent.pyz').testzip())"
    assert images["job"].run("python3", "-c", program).strip() == "None"


def test_proxy_image_runs_jupyterhub_proxy(images: dict[str, Running]) -> None:
    proxy = "/opt/proxy/node_modules/configurable-http-proxy/bin/configurable-http-proxy"
    assert images["proxy"].run("node", proxy, "--version").strip() == "5.3.0"
