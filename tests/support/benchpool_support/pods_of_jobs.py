"""Jobs of a service on a cluster, and their pods in the API server."""

from __future__ import annotations

from typing import Any

from benchpool_cluster.access import Access
from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_support.replicas import Site
from benchpool_support.waiting import until


def command(**more: Any) -> JobSubmission:
    return JobSubmission(entry=CommandEntry(["python3", "-m", "train"]), **more)


def pods(access: Access, site: Site, job: str) -> list[dict[str, Any]]:
    path = f"/api/v1/namespaces/{site.namespace}/pods?labelSelector=benchpool.io%2Fjob%3D{job}"
    found: list[dict[str, Any]] = access.get(path)["items"]
    return found


def running(
    access: Access, site: Site, job: str, count: int = 1, *, waiting: bool = False
) -> list[dict[str, Any]]:
    """Wait until ``count`` pods of a job run, or exist with ``waiting``, and return them."""

    def look() -> list[dict[str, Any]]:
        found = [p for p in pods(access, site, job) if waiting or p["status"]["phase"] == "Running"]
        return found if len(found) == count else []

    return until(look)
