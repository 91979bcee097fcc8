"""Enforcer of network policies on the real nodes: keeps one table of packet rules current.

It runs as ``python -m benchpool_cluster.network_policies KUBECONFIG``. A change takes effect within
a second; a test waits for the effect that it expects.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import httpx

from benchpool_cluster import policy_rules
from benchpool_cluster.access import Access, from_kubeconfig

PAUSE_SECONDS = 0.3


def wanted(access: Access) -> str:
    """Return the table that the cluster's policies require now."""
    policies = access.get("/apis/networking.k8s.io/v1/networkpolicies")["items"]
    if not policies:
        return policy_rules.table(policy_rules.World([]), [])
    pods = access.get("/api/v1/pods")["items"]
    spaces = access.get("/api/v1/namespaces")["items"]
    return policy_rules.table(policy_rules.World.of(pods, spaces), policies)


def enforce(access: Access) -> None:
    """Keep the table current until killed; during an API outage the last table stays."""
    loaded = ""
    while True:
        try:
            table = wanted(access)
        except httpx.HTTPError:
            table = loaded
        if table != loaded:
            done = subprocess.run(["nft", "-f", "-"], input=table, text=True)
            loaded = table if done.returncode == 0 else ""
        time.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    enforce(from_kubeconfig(Path(sys.argv[1])))
