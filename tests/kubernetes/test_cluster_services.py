"""Services on a cluster: the gate forwards requests to the pods through either scheduler."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from benchpool_cluster.access import Access
from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_scheduler.contract.serving import PoolService, ServiceRequest, ServiceState
from benchpool_support import direct
from benchpool_support.pods_of_jobs import pods
from benchpool_support.replicas import Replica, Site
from benchpool_support.waiting import until

pytestmark = pytest.mark.kubernetes

LABELS = {"app.kubernetes.io/component": "scheduler"}


@contextmanager
def program() -> Iterator[tuple[int, list[str]]]:
    """Answer as a program in a pod would; yield its port and the forwarded user names."""
    askers: list[str] = []

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if user := self.headers.get("X-Forwarded-User"):
                askers.append(user)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(f"{self.path} at {self.headers['Host']}".encode())

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1], askers
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def pod_of(access: Access, site: Site, job: str, attempt: int) -> dict[str, Any]:
    """Wait until the pod of an attempt runs, and place it at the test program's address."""

    def look() -> list[dict[str, Any]]:
        return [
            pod
            for pod in pods(access, site, job)
            if pod["metadata"]["labels"]["benchpool.io/attempt"] == str(attempt)
            and pod["status"].get("phase") == "Running"
        ]

    (pod,) = until(look)
    path = f"/api/v1/namespaces/{site.namespace}/pods/{pod['metadata']['name']}/status"
    here = {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}
    access.patch(path, {"status": here})
    return pod


def ready(replica: Replica) -> PoolService:
    """Wait until the service answers."""

    def look() -> list[PoolService]:
        now = replica.client("susan").service("llm")
        return [now] if now.state is ServiceState.READY else []

    (found,) = until(look)
    return found


def asked(replica: Replica, person: str = "susan") -> tuple[int, str]:
    answer = direct.get(
        f"{replica.url}/s/llm/v1?a=%2F", headers={"Authorization": f"token {person}"}, timeout=60
    )
    return answer.status_code, answer.text


def test_requests_reach_pod_after_leader_and_node_change(
    access: Access, site: Site, nodes: tuple[str, ...]
) -> None:
    words = ",".join(f"{name}={value}" for name, value in LABELS.items())
    # A lease long enough for a slow machine: the leader ends in good order.
    site.more = {**site.more, "BENCHPOOL_POD_LABELS": words, "BENCHPOOL_LEADER_LEASE_S": "60"}
    leader = site.started("first")
    standby = site.start("second")
    until(standby.answers)
    with program() as (port, askers):
        submission = JobSubmission(entry=CommandEntry(["serve", "{host}:{port}"]), gpus=1)
        leader.client("susan").serve(ServiceRequest("llm", submission, port=port))
        begun = until(lambda: leader.client("susan").service("llm").replicas)
        job = begun[0].job
        pod = pod_of(access, site, job, 1)
        name = pod["metadata"]["labels"]["batch.kubernetes.io/job-name"]
        policies = f"/apis/networking.k8s.io/v1/namespaces/{site.namespace}/networkpolicies"
        policy = access.get(f"{policies}/{name}")["spec"]
        assert policy["ingress"][0]["ports"] == [{"port": port, "protocol": "TCP"}]
        assert policy["ingress"][0]["from"][0]["podSelector"]["matchLabels"] == LABELS
        ready(leader)
        answer = (200, f"/v1?a=%2F at 127.0.0.1:{port}")
        assert asked(leader) == asked(standby) == answer
        assert asked(standby, "joe")[0] == 404
        assert askers == ["susan", "susan"]

        assert leader.end() == 0
        until(standby.leads)
        until(standby.serves)
        assert ready(standby).replicas[0].job == job
        assert asked(standby) == answer

        path = f"/api/v1/namespaces/{site.namespace}/pods/{pod['metadata']['name']}"
        access.delete(path)
        again = pod_of(access, site, job, 2)
        assert again["metadata"]["uid"] != pod["metadata"]["uid"]
        until(lambda: asked(standby) == answer)
        assert ready(standby).failures == 0
        standby.client("susan").remove_service("llm")
        until(lambda: not [p for p in pods(access, site, job) if p["status"]["phase"] == "Running"])
