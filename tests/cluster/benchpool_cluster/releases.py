"""Releases on the cluster with real nodes, installed with the Helm binary."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchpool_cluster import addresses, build, chart, product_images
from benchpool_cluster.access import Access
from benchpool_cluster.cluster import Cluster
from benchpool_scheduler.contract import kubernetes as names


class HelmFailed(Exception):
    """Error: Helm refused or gave up; the text is its output."""


@dataclass(frozen=True, slots=True)
class Release:
    """A release of the chart in a namespace of the same name.

    Attributes:
        name: Contains `benchpool`, so that the chart uses it unchanged for its objects.
        folder: Folder of Helm's own files.
        chart: The folder of the chart.
    """

    access: Access
    name: str
    folder: Path
    chart: Path = chart.FOLDER

    @property
    def workspace(self) -> str:
        """Return the namespace of notebooks and jobs."""
        return f"{self.name}-work"

    def install(self, values: Mapping[str, Any], *words: str) -> str:
        """Install and return the notes."""
        chosen = ["--create-namespace", *self._values(values), "--wait", "--timeout", "5m", *words]
        return self.helm("install", self.name, str(self.chart), *chosen)

    def upgrade(self, values: Mapping[str, Any], *words: str) -> str:
        """Upgrade and return the notes."""
        chosen = [*self._values(values), "--wait", "--timeout", "5m", *words]
        return self.helm("upgrade", self.name, str(self.chart), *chosen)

    def uninstall(self) -> str:
        """Uninstall and wait until all removed objects are gone."""
        return self.helm("uninstall", self.name, "--wait", "--timeout", "3m")

    def secret(self, key: str) -> str:
        """Return a secret of the release, for example ``user-password``."""
        path = f"/api/v1/namespaces/{self.name}/secrets/{self.name}-secrets"
        return base64.b64decode(self.access.get(path)["data"][key]).decode()

    def take_away(self) -> None:
        """Uninstall, and delete what an uninstall keeps: homes, jobs and definitions."""
        access = self.access
        if self.helm("list", "--short").strip():
            self.uninstall()
        for space in (self.workspace, self.name):
            access.delete(f"/api/v1/namespaces/{space}")
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        for one in access.get(definitions)["items"]:
            if one["metadata"]["name"].endswith(f".{names.GROUP}"):
                access.delete(f"{definitions}/{one['metadata']['name']}")
        for space in (self.workspace, self.name):
            access.wait_gone(f"/api/v1/namespaces/{space}", 120)

    def helm(self, *words: str) -> str:
        """Run Helm in this release's namespace.

        Raises:
            HelmFailed: Helm failed.
        """
        start = [str(build.find("helm")), "--kubeconfig", str(self.access.kubeconfig)]
        homes = ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")
        apart = {one: str(self.folder / one.lower()) for one in homes}
        done = subprocess.run(
            [*start, "--namespace", self.name, *words],
            env=os.environ | apart,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise HelmFailed(f"helm {' '.join(words)}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def _values(self, values: Mapping[str, Any]) -> list[str]:
        file = self.folder / "values.json"
        file.write_text(json.dumps(values))
        return ["--values", str(file)]


def values() -> dict[str, Any]:
    """Return the values of every release on the test cluster: images and the DNS address."""
    return {
        "images": {
            "prefix": product_images.PREFIX,
            "tag": product_images.TAG,
            "pullPolicy": "Never",
        },
        "networkPolicy": {"dns": {"ipBlocks": [f"{addresses.DNS}/32"]}},
        # Half a day away, so that only a test creates copies.
        "backup": {"schedule": f"0 {(datetime.now(UTC).hour + 12) % 24} * * *"},
    }


def load_images(cluster: Cluster) -> None:
    """Build all images and load them into every node."""
    built = [product_images.build(part) for part in product_images.PARTS]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda one: cluster.load_image(one.archive, one.name), built))
