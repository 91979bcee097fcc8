"""The chart's network policies between real pods on two nodes, applied by a small enforcer."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from benchpool_cluster import addresses, chart, pods
from benchpool_cluster.cluster import Cluster
from benchpool_scheduler.contract import kubernetes as names
from benchpool_scheduler.runtime import Launch, WorkerId
from benchpool_scheduler.runtime.kubernetes import manifests
from benchpool_support.pods import settings_for
from benchpool_support.waiting import until

pytestmark = pytest.mark.kubernetes

PORTS = {
    "hub": (8081,),
    "proxy": (8000, 8001),
    "scheduler": (8080,),
    "replica": (8080,),
    "notebook": (8888, 8000),
    "neighbour": (8888,),
    "worker": (29500,),
    "peer": (29500,),
    "other-job": (29500,),
    "served": (12345, 29500),
    "unknown": (8000,),
    "stranger": (8000,),
}
METADATA, INTERNET = "169.254.169.254", "203.0.113.7"
OUTSIDE = {"metadata": (METADATA, 8000), "internet": (INTERNET, 8000)}
API = ("api", 443)
PUBLIC = ("stranger", 8000)
"""Hub and scheduler may reach any login service and store; only metadata is blocked."""

ALLOWED: dict[str, set[tuple[str, int]]] = {
    "hub": {
        *(("proxy", 8000), ("proxy", 8001), ("scheduler", 8080), ("replica", 8080)),
        *(("notebook", 8888), ("neighbour", 8888), API, ("internet", 8000), PUBLIC),
    },
    "proxy": {
        *(("hub", 8081), ("scheduler", 8080), ("replica", 8080)),
        *(("notebook", 8888), ("neighbour", 8888)),
    },
    "scheduler": {
        ("hub", 8081),
        ("replica", 8080),
        ("proxy", 8000),
        API,
        ("internet", 8000),
        ("served", 12345),
        PUBLIC,
    },
    "notebook": {
        *(("hub", 8081), ("proxy", 8000), ("scheduler", 8080), ("replica", 8080)),
        ("internet", 8000),
    },
    "worker": {("scheduler", 8080), ("replica", 8080), ("peer", 29500), ("internet", 8000)},
    "other-job": {("scheduler", 8080), ("replica", 8080), ("internet", 8000)},
    "served": {("scheduler", 8080), ("replica", 8080), ("internet", 8000)},
    "unknown": set(),
    "stranger": {("proxy", 8000), API, ("metadata", 8000), ("internet", 8000)},
}
"""Allowed peers of each pod; everything else is blocked.

A stranger is a pod of another namespace. An unknown is a pod of the work namespace that is neither
a notebook nor a worker.
"""

SERVE = """
import socketserver, sys, threading
class Silent(socketserver.BaseRequestHandler):
    def handle(self): pass
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
servers = [Server(("", int(port)), Silent) for port in {ports!r}]
threads = [threading.Thread(target=server.serve_forever) for server in servers]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
TRY = """
import json, socket, sys
from concurrent.futures import ThreadPoolExecutor
def reach(one):
    try:
        socket.create_connection((one[1], one[2]), 2).close()
        return True
    except OSError:
        return False
goals = json.loads(sys.argv[1])
with ThreadPoolExecutor(len(goals)) as pool:
    print(json.dumps([goal for goal, yes in zip(goals, pool.map(reach, goals)) if yes]))
"""
LISTEN = """
import socket
for address in {addresses!r}:
    server = socket.create_server((address, 8000))
    globals()["server" + address] = server
print("here", flush=True)
import time; time.sleep(600)
"""


@dataclass(frozen=True, slots=True)
class Network:
    """Pods of every component, by name, with their addresses."""

    spaces: dict[str, pods.Space]
    addresses: dict[str, str]

    def reached(self, who: str) -> set[tuple[str, int]]:
        """Return everything that a pod reaches now."""
        goals: list[tuple[str, str, int]] = [
            (name, self.addresses[name], port) for name, ports in PORTS.items() for port in ports
        ]
        goals += [(name, *place) for name, place in OUTSIDE.items()]
        goals.append((API[0], "10.97.0.1", API[1]))
        others = [goal for goal in goals if goal[0] != who]
        output = self.spaces[who].exec(who, "python3", "-c", TRY, json.dumps(others), seconds=60)
        return {(name, port) for name, _, port in json.loads(output)}


@pytest.fixture(scope="module")
def outside(cluster: Cluster) -> Iterator[None]:
    """Provide a cloud metadata service and an internet host on this machine."""
    bridge = "bp-hosts"
    for address in (METADATA, INTERNET):
        subprocess.run(["ip", "address", "add", f"{address}/32", "dev", bridge], check=True)
    program = LISTEN.format(addresses=[METADATA, INTERNET])
    listener = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert listener.stdout is not None
    assert listener.stdout.readline() == b"here\n"
    yield
    listener.kill()
    listener.wait()
    for address in (METADATA, INTERNET):
        subprocess.run(["ip", "address", "delete", f"{address}/32", "dev", bridge], check=True)


def _labels(rendered: chart.Rendered, part: str) -> dict[str, str]:
    template = rendered.the("Deployment", f"benchpool-{part}")["spec"]["template"]
    found: dict[str, str] = template["metadata"]["labels"]
    return found


def _gang(job: str) -> dict[str, str]:
    name = names.attempt_name(job, 1)
    return {
        names.ROLE: names.ROLE_WORKER,
        names.JOB: job,
        "batch.kubernetes.io/job-name": name,
    }


def _peers(job: str) -> chart.Manifest:
    """Return the scheduler's network policy for a gang, without the Job that would own it."""
    launch = Launch(WorkerId(job, 1, 0), argv=("true",), env={}, gpus=(), working_dir=None)
    policy = manifests.peers(launch, uid="", epoch=1)
    del policy["metadata"]["ownerReferences"]
    return policy


def _entrance(job: str, rendered: chart.Rendered) -> chart.Manifest:
    """Return the scheduler's network policy for a service replica on port 12345."""
    worker = WorkerId(job, 1, 0)
    launch = Launch(worker, argv=("true",), env={}, gpus=(), working_dir=None, serves=12345)
    labels = rendered.the("Deployment", "benchpool-scheduler")["spec"]["selector"]["matchLabels"]
    settings = settings_for("work", scheduler_namespace=rendered.namespace, scheduler_labels=labels)
    policy = manifests.entrance(launch, "", settings, epoch=1)
    del policy["metadata"]["ownerReferences"]
    return policy


@pytest.fixture(scope="module")
def network(cluster: Cluster, outside: None) -> Iterator[Network]:
    """Yield pods of all components on two nodes, with the chart's network policies."""
    with ExitStack() as stack:
        ours, work, elsewhere = (stack.enter_context(pods.space(cluster)) for _ in range(3))
        values: dict[str, Any] = {
            "workspace": {"name": work.name},
            "networkPolicy": {"dns": {"ipBlocks": [f"{addresses.DNS}/32"]}},
        }
        rendered = chart.render(values, namespace=ours.name)
        notebook = {"component": "singleuser-server", names.ROLE: names.ROLE_NOTEBOOK}
        made: dict[str, tuple[pods.Space, int, dict[str, str]]] = {
            "hub": (ours, 1, _labels(rendered, "hub")),
            "proxy": (ours, 2, _labels(rendered, "proxy")),
            "scheduler": (ours, 1, _labels(rendered, "scheduler")),
            "replica": (ours, 2, _labels(rendered, "scheduler")),
            "notebook": (work, 1, notebook),
            "neighbour": (work, 2, notebook),
            "worker": (work, 1, _gang("one")),
            "peer": (work, 2, _gang("one")),
            "other-job": (work, 2, _gang("two")),
            "served": (work, 2, _gang("three")),
            "unknown": (work, 1, {}),
            "stranger": (elsewhere, 1, {}),
        }
        for name, (space, node, labels) in made.items():
            program = SERVE.format(ports=PORTS[name])
            pod = pods.python_pod(name, program, node=f"node-{node}", labels=labels)
            space.create("pods", pod)
        found = {
            name: space.wait(name, "Running")["status"]["podIP"]
            for name, (space, _, _) in made.items()
        }
        network = Network({name: one[0] for name, one in made.items()}, found)
        everything = {(n, p) for n, ports in PORTS.items() for p in ports} | {API}
        until(lambda: network.reached("stranger") >= everything - {("stranger", 8000)})
        policies = [*rendered.of("NetworkPolicy")]
        for one in policies:
            cluster.access.apply(chart.place(one), one)
        for job in ("one", "two"):
            work.create("networkpolicies", _peers(job), "/apis/networking.k8s.io/v1")
        entrance = _entrance("three", rendered)
        work.create("networkpolicies", entrance, "/apis/networking.k8s.io/v1")
        until(lambda: network.reached("stranger") == ALLOWED["stranger"])
        yield network


@pytest.mark.parametrize("who", ALLOWED)
def test_pods_reach_only_allowed_peers(network: Network, who: str) -> None:
    assert network.reached(who) == ALLOWED[who]


@pytest.mark.parametrize("who", ["hub", "proxy", "scheduler", "notebook", "worker"])
def test_dns_names_are_resolved(network: Network, who: str) -> None:
    look = "import socket; print(socket.gethostbyname('kubernetes.default.svc.cluster.local'))"
    assert network.spaces[who].exec(who, "python3", "-c", look).strip() == "10.97.0.1"
