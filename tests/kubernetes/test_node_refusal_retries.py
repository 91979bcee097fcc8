"""A node that briefly refuses a job is retried after seconds, and the job shows it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchpool_cluster import kwok_nodes
from benchpool_cluster.access import Access
from benchpool_scheduler.contract import CommandEntry, JobSubmission, State
from benchpool_support.replicas import Site
from benchpool_support.waiting import until

pytestmark = pytest.mark.kubernetes


@pytest.fixture
def refusing(access: Access) -> Iterator[str]:
    """Yield a node that refuses a job's first two attempts, as in ``kwok_stages.yaml``."""
    name, model = "refusing", {"nvidia.com/gpu.product": "NVIDIA-H100"}
    kwok_nodes.add(access, name, gpus=4, labels={"example.org/rack": "east"} | model)
    kwok_nodes.wait_ready(access, name)
    yield name
    kwok_nodes.remove(access, name)


def test_refusing_node_is_retried_after_delay(site: Site, refusing: str) -> None:
    client = site.started().client("susan")
    job = client.submit(JobSubmission(entry=CommandEntry(["train"]), gpu_models=("H100",))).id

    def refusal() -> str:
        reason = client.job(job).job.reason
        text = "" if reason is None else reason.text
        return text if "did not accept" in text else ""

    message = until(refusal)
    assert f"{refusing} did not accept attempt 1, and this job avoids it for 5 s" in message
    assert "(UnexpectedAdmissionError): Allocate failed" in message
    until(lambda: client.job(job).job.state is State.RUNNING)
    assert client.job(job).job.attempt == 3
