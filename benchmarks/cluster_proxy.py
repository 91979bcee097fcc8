"""How soon a notebook and the pool are reached again when a cluster's proxy was lost.

``python benchmarks/cluster_proxy.py [--runs 5]``, as root, on the cluster for tests with two real
nodes (`make cluster` keeps it; else it is started and taken away). The proxy's process is killed
and its pod deleted in turn. Times are from when the new proxy is ready; until then nothing can
answer.
"""

from __future__ import annotations

import argparse
import secrets
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import checkout  # noqa: F401
import httpx
from tables import Figure, show

from benchpool_cluster import containers, parts, releases, sharing
from benchpool_cluster.cluster import Cluster
from benchpool_cluster.sites import SERVICE, Site
from benchpool_cluster.witness import Object
from benchpool_support import direct
from benchpool_support.waiting import until

REST_S = 30
"""Between two losses: a container that ends again and again is kept waiting by its node."""


def lost(site: Site, lose: Callable[[Object], object]) -> tuple[float, float]:
    """Lose the proxy; return the seconds until the notebook and the pool answer again."""
    headers = {"Authorization": f"token {site.token('susan')}"}

    def answers(path: str) -> bool:
        try:
            return direct.get(site.url + path, headers=headers, timeout=30).status_code == 200
        except httpx.HTTPError:
            return False

    (former,) = parts.pods_of(site, "proxy")
    lose(former)
    until(lambda: parts.is_anew(site, former), "the proxy is there anew")
    began = time.monotonic()
    until(lambda: answers("/user/susan/api/status"), "the notebook answers")
    notebook = time.monotonic() - began
    until(lambda: answers(f"{SERVICE}/api/v1/health"), "the pool answers")
    return notebook, time.monotonic() - began


def figures(cluster: Cluster, folder: Path, runs: int) -> list[Figure]:
    """Lose the proxy of an installed release again and again."""
    releases.load_images(cluster)
    release = releases.Release(cluster.access, f"benchpool-{secrets.token_hex(3)}", folder)
    found = []
    try:
        release.install(releases.values())
        site = Site.of(cluster, release)
        site.wait_ready()
        site.start_notebook("susan", gpus=0)
        ways: dict[str, Callable[[Object], object]] = {
            "process killed": containers.kill,
            "pod deleted": lambda pod: site.access.delete(parts.path_of(pod)),
        }
        for name, lose in ways.items():
            took = []
            for _ in range(runs):
                took.append(lost(site, lose))
                time.sleep(REST_S)
            for number, what in enumerate(("notebook", "pool")):
                seconds = tuple(each[number] for each in took)
                found.append(Figure(f"{name}: the {what} answers again", "s", seconds))
    finally:
        release.take_away()
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    chosen = parser.parse_args()
    use = sharing.join()
    try:
        with tempfile.TemporaryDirectory() as folder:
            show("A proxy that was lost", figures(use.cluster, Path(folder), chosen.runs))
    finally:
        use.leave()


if __name__ == "__main__":
    main()
