"""Time until a notebook and the pool are reachable again after the loss of a cluster's proxy.

``python benchmarks/cluster_proxy.py [--runs 5]``, as root, on the test cluster with two real nodes
(`make cluster` keeps it; otherwise it is started and removed). The proxy's process is killed and
its pod deleted in turn. Times begin when the new proxy is ready, since nothing can answer before.
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
"""Delay between two losses, in seconds; a node delays a container that ends again and again."""


def lost(site: Site, lose: Callable[[Object], object]) -> tuple[float, float]:
    """Stop the proxy by ``lose``; return the seconds until notebook and pool answer again."""
    headers = {"Authorization": f"token {site.token('susan')}"}

    def answers(path: str) -> bool:
        try:
            return direct.get(site.url + path, headers=headers, timeout=30).status_code == 200
        except httpx.HTTPError:
            return False

    (former,) = parts.pods_of(site, "proxy")
    lose(former)
    until(lambda: parts.is_replaced(site, former), "the proxy is there anew")
    began = time.monotonic()
    until(lambda: answers("/user/susan/api/status"), "the notebook answers")
    notebook = time.monotonic() - began
    until(lambda: answers(f"{SERVICE}/api/v1/health"), "the pool answers")
    return notebook, time.monotonic() - began


def figures(cluster: Cluster, folder: Path, runs: int) -> list[Figure]:
    """Stop the proxy of an installed release several times, and return the figures."""
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
