"""A stopped cluster leaves nothing on the machine."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from benchpool_cluster import cgroups, network, places, pods, sharing

pytestmark = pytest.mark.kubernetes


def test_stopped_cluster_leaves_no_traces(cluster_use: sharing.Use) -> None:
    cluster = cluster_use.cluster
    with cluster_use.alone() as ours:
        if not ours:
            pytest.skip("somebody else uses the cluster now")
        pods.Space(cluster, "default").run(pods.python_pod("last", pods.WAIT, gpus=1))
        kept = json.loads((cluster.plane.folder / "kernel.json").read_text())
        assert traces()
        cluster.stop()
        assert traces() == []
        assert {name: network.setting(name) for name in kept} == kept
        cluster.start()


def traces() -> list[str]:
    """Return all traces of a cluster: mounts, groups, links, packet rules, processes, files."""
    folder = str(places.state())
    found = [line for line in Path("/proc/mounts").read_text().splitlines() if folder in line]
    for tree in cgroups.trees():
        found += [str(group) for group in tree.glob("**/*benchpool-node*")]
    ours = (network.HOSTS, "bp-pods", "veth", "kube-proxy", "benchpool")
    for command in (("ip", "-oneline", "link"), ("nft", "list", "tables")):
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        found += [line for line in lines.splitlines() if any(word in line for word in ours)]
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = process.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if folder in words or "benchpool_cluster." in words:
            found.append(words)
    return found + ([folder] if places.state().exists() else [])
