"""Copies made by the chart's CronJobs: how to make one now, and whether the last one succeeded.

The scheduler may only read these CronJobs. With the right to create Jobs in its namespace it could
read the release's secrets.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from benchpool_scheduler.kube import Connection, KubeFailure, KubeNotFound, KubeUnavailable
from benchpool_scheduler.kube.kinds import CRON_JOBS
from benchpool_scheduler.service import Pool

log = logging.getLogger("benchpool_scheduler")

FIRST_LOOK_S, LOOK_S = 5.0, 600.0
LATE = timedelta(hours=2)
"""Delay after which a due copy counts as missed. The chart gives up after one hour."""
OBJECTS = "trainingjobs,buildleases,projects,nodepools,poolsettings"


class _Status(msgspec.Struct, rename="camel"):
    last_schedule_time: datetime | None = None
    last_successful_time: datetime | None = None


class _CronJob(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


def how_to_copy(namespace: str, jobs: Sequence[str], release: str = "") -> str:
    """Return how to back up everything on a cluster, as text with commands.

    >>> how_to_copy("lab", ["pool-copy"], "pool").rpartition("now: ")[2]
    '`kubectl -n lab create job --from=cronjob/pool-copy pool-copy-$(date +%s)`. To put the newest \
copies back: the commands that `helm -n lab get notes pool` prints.'
    """
    facts = (
        "On a cluster the pool's data are objects of the API server. Back them up with the "
        f"cluster's own tools, such as Velero or `kubectl get {OBJECTS} -A -o yaml`."
    )
    if not jobs:
        return f"{facts} The volumes are not copied. Set backup.enabled of the chart."
    now = " ".join(
        f"`kubectl -n {namespace} create job --from=cronjob/{it} {it}-$(date +%s)`" for it in jobs
    )
    return (
        f"{facts} Volumes are copied on schedule by {' and '.join(jobs)}; for a copy now: {now}."
        + (
            f" To put the newest copies back: the commands that `helm -n {namespace} get notes "
            f"{release}` prints."
            if release
            else ""
        )
    )


class ClusterCopies:
    """Reporter of copies that were due and are missing."""

    def __init__(self, connection: Connection, namespace: str, jobs: Sequence[str]) -> None:
        self._connection = connection
        self._namespace = namespace
        self._jobs = jobs

    async def keep(self, pool: Pool) -> None:
        """Check the copies at intervals, until cancelled. Return if there are none to check."""
        await asyncio.sleep(FIRST_LOOK_S)
        while self._jobs:
            try:
                found = [await self._missed(name) for name in self._jobs]
            except (KubeFailure, KubeUnavailable) as failed:
                log.warning("check of volume copies failed: %s", failed)
            else:
                pool.observed.report("backup", " ".join(filter(None, found)) or None)
            await asyncio.sleep(LOOK_S)

    async def _missed(self, name: str) -> str | None:
        try:
            job = await self._connection.get(
                CRON_JOBS, name, namespace=self._namespace, as_=_CronJob
            )
        except KubeNotFound:
            return f"The CronJob {name} that copies a volume does not exist. Upgrade the release."
        due, made = job.status.last_schedule_time, job.status.last_successful_time
        if due is None or (made is not None and made >= due):
            return None
        if datetime.now(due.tzinfo) - due < LATE:
            return None
        last = f"the last copy is from {made:%Y-%m-%d %H:%M} UTC" if made else "no copy exists yet"
        return (
            f"The copy by {name} that was due at {due:%Y-%m-%d %H:%M} UTC was not made; {last}. "
            f"See `kubectl -n {self._namespace} describe cronjob {name}` and `kubectl -n "
            f"{self._namespace} logs -l app.kubernetes.io/component={_component(name)}`."
        )


def _component(name: str) -> str:
    return "-".join(name.split("-")[-2:])
