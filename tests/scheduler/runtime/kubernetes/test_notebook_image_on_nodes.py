"""The image of a notebook as the kubelet reports it, and a job in that image."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from benchpool_cluster import pods
from benchpool_cluster.cluster import Cluster
from benchpool_cluster.images import CONNECT_TIMEOUT
from benchpool_scheduler.runtime.kubernetes.volumes import WHOSE
from benchpool_support.pods import launches
from benchpool_support.real_pods import Bundle, RealStand
from benchpool_support.waiting import until_async

pytestmark = pytest.mark.kubernetes

WAIT = "import time; time.sleep(120)"


def ctr(cluster: Cluster, node: int, *words: str) -> str:
    """Run ``ctr`` on a node and return its output."""
    command = ["ctr", "--address", str(cluster.nodes[node].socket), "--namespace", "k8s.io"]
    command += ["--connect-timeout", CONNECT_TIMEOUT]
    return subprocess.run(
        [*command, "images", *words], check=True, capture_output=True, text=True
    ).stdout


def digest_of(cluster: Cluster, image: str) -> str:
    """Return the digest of an image on the nodes."""
    (row,) = [
        line.split() for line in ctr(cluster, 0, "list").splitlines() if line.startswith(image)
    ]
    return next(word for word in row if word.startswith("sha256:"))


def notebook(name: str, image: str) -> dict[str, Any]:
    """Return a notebook pod of user susan."""
    pod = pods.python_pod(name, WAIT, node="node-1", labels={WHOSE: "susan"})
    pod["metadata"]["annotations"] = {WHOSE: "susan"}
    (container,) = pod["spec"]["containers"]
    container |= {"name": "notebook", "image": image, "securityContext": CONFINED}
    return pod


CONFINED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "seccompProfile": {"type": "RuntimeDefault"},
}


async def test_job_runs_digest_reported_by_kubelet(
    real: RealStand, real_space: pods.Space, cluster: Cluster, agent_image: str
) -> None:
    image = agent_image
    # An image that was loaded into the nodes by hand has no digest that another node can pull.
    real_space.run(notebook("loaded", image))

    async def known() -> bool:
        return "no running notebook" not in real.runtime.pinned("susan", image).why

    await until_async(known)
    found = real.runtime.pinned("susan", image)
    assert (found.image, found.why[:24]) == (image, "it was loaded onto the n")
    real_space.cluster.access.delete(real_space.path("pods", "loaded"), 0)

    # A pulled image has a digest of its repository.
    pulled = f"{image.rpartition(':')[0]}@{digest_of(cluster, image)}"
    for node in range(2):
        ctr(cluster, node, "tag", "--force", image, pulled)
    real_space.run(notebook("pulled", image))

    async def pinned() -> bool:
        return real.runtime.pinned("susan", image).image == pulled

    await until_async(pinned)
    bundle = Bundle(train_py="print('in the same image')")
    real.bundle.add(bundle)
    (launch,) = launches(
        [("node-2", (0,))],
        argv=("python3", "train.py"),
        files=bundle.files,
        image=real.runtime.pinned("susan", image).image,
    )
    (worker,) = await real.run([launch])
    (end,) = await real.ended(worker)
    assert end.exit_code == 0
    assert "in the same image" in await real.log(worker)
    (pod,) = await real.pods(worker.job)
    worker_container = next(c for c in pod["spec"]["containers"] if c["name"] == "worker")
    assert worker_container["image"] == pulled
    (status,) = [s for s in pod["status"]["containerStatuses"] if s["name"] == "worker"]
    assert status["imageID"].endswith(digest_of(cluster, image))
