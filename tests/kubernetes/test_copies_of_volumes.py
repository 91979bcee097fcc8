"""What is not in the API server is copied by CronJobs: ``backup`` says how, `status` when not."""

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
            "suspend": True,  # its times are ours
            "jobTemplate": {"spec": {"template": {"spec": pod}}},
        },
    }


def test_a_copy_that_was_due_and_is_not_there_is_a_problem_and_backup_says_what_to_do(
    access: Access, site: Site
) -> None:
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
        (told,) = [it for it in client.status().health.problems if NAME in it]
        assert f"the last one is of {made:%F %H:%M} UTC" in told
        with pytest.raises(Refused) as refused:
            client.backup()
        said = str(refused.value)
        (command,) = re.findall(r"`(kubectl [^`]* create job [^`]*)`", said)
        assert command == (
            f"kubectl -n {site.namespace} create job --from=cronjob/{NAME} {NAME}-$(date +%s)"
        )
    finally:
        site.close()
