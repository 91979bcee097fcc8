"""Cost of reading a cluster with our calls, and with the official client's models and objects.

``python benchmarks/kube_client.py [--pods 20000]``: lists of pods in the API server's form, 500 a
page, each way in a process of its own. It also measures how long two replicas lead at the same time
when the leader's renewals hang, under the official client's election.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

PAGE = 500
WAYS = ("ours", "models", "dynamic")
LEASE_S, RENEW_S, RETRY_S, HANGS_S = 5.0, 3.0, 2.0, 15.0


def pod(number: int) -> dict[str, Any]:
    """Return a pod of a job in the API server's form, with the managers of its fields."""
    names = {"benchpool.io/role": "worker", "benchpool.io/job": f"job{number}"}
    managed: dict[str, Any] = {f"f:field-{index}": {"f:value": {}} for index in range(60)}
    container = {
        "name": "worker",
        "image": "registry.example.org/team/image@sha256:" + "0" * 64,
        "env": [{"name": f"VARIABLE_{index}", "value": "x" * 20} for index in range(20)],
        "resources": {
            "requests": {"cpu": "4", "memory": "32Gi"},
            "limits": {"nvidia.com/gpu": "1"},
        },
        "volumeMounts": [{"name": f"v{index}", "mountPath": f"/v{index}"} for index in range(4)],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{number}",
            "namespace": "jobs",
            "uid": f"uid-{number}",
            "resourceVersion": str(number),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": names,
            "managedFields": [
                {"manager": manager, "operation": "Update", "fieldsV1": managed}
                for manager in ("kube-controller-manager", "kubelet")
            ],
        },
        "spec": {"nodeName": f"n{number % 1000}", "containers": [container]},
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
                for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
            ],
            "containerStatuses": [
                {
                    "name": "worker",
                    "image": "i",
                    "imageID": "i",
                    "ready": True,
                    "restartCount": 0,
                    "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
                }
            ],
        },
    }


def reader(way: str) -> Callable[[bytes], list[Any]]:
    """Return the function that turns a page into the objects of a cache."""
    if way == "ours":
        import msgspec

        from benchpool_scheduler.runtime.kubernetes.cluster_views import keep_pod
        from benchpool_scheduler.runtime.kubernetes.raw_objects import RawPod

        page = msgspec.defstruct("Page", [("items", list[RawPod])])
        decode = msgspec.json.Decoder(page).decode
        return lambda text: [keep_pod(one) for one in decode(text).items]  # type: ignore[attr-defined]
    if way == "models":
        from kubernetes.client import ApiClient

        client = ApiClient()
        return lambda text: list(
            client.deserialize(text.decode(), "V1PodList", "application/json").items
        )
    from kubernetes.dynamic.resource import ResourceField

    return lambda text: [ResourceField(one) for one in json.loads(text)["items"]]


def measure(way: str, count: int) -> dict[str, float]:
    """Return the CPU seconds and the MiB for reading and keeping the pods."""
    read = reader(way)
    read(json.dumps({"items": [pod(0)]}).encode())
    pages = [
        json.dumps({"items": [pod(n) for n in range(first, first + PAGE)]}).encode()
        for first in range(0, min(count, 4 * PAGE), PAGE)
    ]
    before, begun = _resident_mib(), time.process_time()
    kept = [one for number in range(count // PAGE) for one in read(pages[number % len(pages)])]
    spent = time.process_time() - begun
    return {"cpu_s": spent, "mib": _resident_mib() - before, "kept": len(kept)}


def _resident_mib() -> float:
    import psutil

    return float(psutil.Process().memory_info().rss) / 2**20


class _Lock:
    """Lease in memory for one candidate; while it hangs, its holder's writes take long."""

    def __init__(self, shared: dict[str, Any], identity: str) -> None:
        self.name, self.namespace, self.identity = "lease", "default", identity
        self.hangs = False
        self._shared = shared

    def get(self, name: str, namespace: str) -> tuple[bool, Any]:
        """Return whether there is a record, and the record."""
        found = self._shared.get("record")
        body = type("Missing", (), {"body": '{"code": 404}', "reason": "none"})()
        return (True, found) if found is not None else (False, body)

    def create(self, name: str, namespace: str, election_record: Any) -> bool:
        """Write the first record."""
        self._shared["record"] = election_record
        return True

    def update(self, name: str, namespace: str, election_record: Any) -> bool:
        """Write a record, in time or too late; a late write finds a conflict."""
        if self.hangs:
            time.sleep(HANGS_S)
            return False
        self._shared["record"] = election_record
        return True


def seconds_of_two_leaders() -> float:
    """Return how long two candidates lead at the same time after the first one's renewals hang."""
    from kubernetes.leaderelection import electionconfig, leaderelection

    shared: dict[str, Any] = {}
    began: dict[str, float] = {}
    ended: dict[str, float] = {}

    def candidate(identity: str) -> _Lock:
        lock = _Lock(shared, identity)
        config = electionconfig.Config(
            lock,
            lease_duration=LEASE_S,
            renew_deadline=RENEW_S,
            retry_period=RETRY_S,
            onstarted_leading=lambda: began.setdefault(identity, time.monotonic()),
            onstopped_leading=lambda: ended.setdefault(identity, time.monotonic()),
        )
        run = leaderelection.LeaderElection(config).run
        threading.Thread(target=run, daemon=True).start()
        return lock

    first = candidate("first")
    time.sleep(1.0)
    candidate("second")
    time.sleep(0.5)
    first.hangs = True
    while "first" not in ended:
        time.sleep(0.05)
    return ended["first"] - began["second"] if "second" in began else 0.0


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--way", choices=WAYS)
    asked = parser.parse_args()
    if asked.way:
        print(json.dumps(measure(asked.way, asked.pods)))
        return 0
    length = len(json.dumps(pod(0)))
    print(f"| {asked.pods} pods of {length} bytes | CPU, s | kept, MiB |\n|---|---|---|")
    for way in WAYS:
        command = [sys.executable, __file__, "--way", way, "--pods", str(asked.pods)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found = json.loads(done.stdout)
        print(f"| {way} | {found['cpu_s']:.1f} | {found['mib']:.0f} |")
    print(
        f"\nThe official election, lease {LEASE_S:g} s, renewals that hang {HANGS_S:g} s: "
        f"two lead at once for {seconds_of_two_leaders():.1f} s."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
