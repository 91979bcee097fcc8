"""CronJobs copy data outside the API server: ``backup`` describes them, `status` reports gaps."""

from __future__ import annotations

import dataclasses
import re
from datetime import UTC, datetime, timedelta

import pytest

from benchpool_cluster.access import Access
from benchpool_scheduler.errors import Refused
from benchpool_support.replicas import Site
from benchpool_support.waiting import until

pytestmark = pytest.mark.kubernetes

NAME = "benchpool-copy-pool"


def cron_job() -> dict[str, object]:
    container = {"name": "copy", "image": "copy"}
    pod = {"restartPolicy": "Never", "containers": [container]}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": NAME},
        "spec": {
            "schedule": "30 3 * * *",
            "suspend": True,  # the test sets its times
            "jobTemplate": {"spec": {"template": {"spec": pod}}},
        },
    }


def test_missing_volume_copy_is_reported_as_problem(access: Access, site: Site) -> None:
    jobs = f"/apis/batch/v1/namespaces/{site.namespace}/cronjobs"
    access.create(jobs, cron_job())
    due, made = (datetime.now(UTC) - timedelta(hours=hours) for hours in (3, 27))
    status = {"lastScheduleTime": f"{due:%FT%TZ}", "lastSuccessfulTime": f"{made:%FT%TZ}"}
    access.patch(f"{jobs}/{NAME}/status", {"status": status})
    site = dataclasses.replace(site, more={"BENCHPOOL_COPIES": NAME})
    leader = site.started()
    try:
        client = leader.client("ada")
        until(lambda: any(NAME in it for it in client.status().health.problems))
        (problem,) = [it for it in client.status().health.problems if NAME in it]
        assert f"the last copy is from {made:%F %H:%M} UTC" in problem
        with pytest.raises(Refused) as refused:
            client.backup()
        message = str(refused.value)
        (command,) = re.findall(r"`(kubectl [^`]* create job [^`]*)`", message)
        assert command == (
            f"kubectl -n {site.namespace} create job --from=cronjob/{NAME} {NAME}-$(date +%s)"
        )
    finally:
        site.close()
