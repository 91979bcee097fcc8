"""Background task that turns external pods into jobs, and ends jobs whose pods are gone."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Collection

from benchpool_scheduler.contract import PodsEntry
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.errors import BenchpoolError, Unavailable
from benchpool_scheduler.phrases import visible
from benchpool_scheduler.runtime import Runtime
from benchpool_scheduler.runtime.admitted import Admits, AdmittedWorkload, AdmittingRuntime
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.jobs.admission import Admission
from benchpool_scheduler.service.jobs.admitted import pod_submissions
from benchpool_scheduler.service.jobs.admitted.admission_decisions import decide
from benchpool_scheduler.service.jobs.commands import Commands
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState

log = logging.getLogger(__name__)

AGAIN_S = 30.0
"""Time until a refused workload is tried again, in seconds; a change triggers an earlier try."""
GONE = "Its pods no longer exist, or their namespace is no longer admitted."
FOR = "its pods"


class AdmittedRunner:
    """Background task that checks external pods and their jobs after each change.

    It does nothing if the runtime admits no external pods.
    """

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        admission: Admission,
        commands: Commands,
        runtime: Runtime,
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._admission = admission
        self._commands = commands
        self._admits: Admits | None = None
        if isinstance(runtime, AdmittingRuntime):
            self._admits = runtime.admits
        self._news = asyncio.Event()
        self._jobs: set[str] = set()

    def see(self, jobs: Collection[str]) -> None:
        """Wake the task if a job of external pods has changed."""
        if not self._jobs.isdisjoint(jobs):
            self._news.set()

    async def run(self) -> None:
        """Run until cancelled; return at once if the runtime admits no pods."""
        if self._admits is None:
            return
        await self._ledger.whole.wait()
        self._jobs = {it.id for it in self._ledger.live() if self._is_of_pods(it.id)}
        watching = asyncio.create_task(self._watch(self._admits))
        try:
            while True:
                wait_s = None if await self._look(self._admits) else AGAIN_S
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await self._news.wait()
                self._news.clear()
        finally:
            watching.cancel()

    async def _watch(self, admits: Admits) -> None:
        while True:
            await admits.admitted_changed()
            self._news.set()

    def _is_of_pods(self, job: str) -> bool:
        known = self._ledger.job(job)
        if known is None or pod_submissions.TAG not in known.spec.tags:
            return False
        return isinstance(self._ledger.submission(job).entry, PodsEntry)

    async def _look(self, admits: Admits) -> bool:
        """Carry out the decisions; return False if some must be tried again."""
        workloads = admits.admitted()
        acts = decide(workloads, self._states(workloads))
        done = True
        for job, text in acts.messages.items():
            admits.write_reason(job, text)
        for one in acts.accept:
            done = await self._accept(admits, one) and done
        for job in acts.end:
            done = await self._end(job) and done
        return done

    def _states(self, workloads: Collection[AdmittedWorkload]) -> dict[str, JobState]:
        records = [self._ledger.job(job) for job in {*self._jobs, *(it.job for it in workloads)}]
        known = [record for record in records if record is not None]
        self._jobs = {record.id for record in known if record.live}
        return {record.id: record.state for record in known}

    async def _accept(self, admits: Admits, one: AdmittedWorkload) -> bool:
        try:
            submission = pod_submissions.of_workload(one, self._observed.now.inventory.devices)
            caller = Caller(one.user, kind="cluster")
            await self._admission.accept_as(caller, submission, one.job)
        except BenchpoolError as error:
            admits.write_reason(one.job, f"It is not accepted: {visible(error.message)}")
            return False
        except Exception:
            log.exception("pods of %s/%s could not be accepted", one.namespace, one.owner)
            return False
        self._jobs.add(one.job)
        log.info("pods of %s %s/%s are job %s", one.owner_kind, one.namespace, one.owner, one.job)
        return True

    async def _end(self, job: str) -> bool:
        try:
            await self._commands.let_go(job, GONE, FOR)
        except Unavailable:
            return False
        except BenchpoolError as error:
            log.info("job %s has no pods and could not be ended: %s", job, error.message)
        return True
