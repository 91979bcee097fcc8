"""Preemption of jobs on the GPU of a returning parked bench, as for any bench (R3)."""

from __future__ import annotations

from collections.abc import Iterator

from benchpool_scheduler.core.model import GpuId, JobId, NodeName, Plan, Preempt, Worker
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observations import Observations


def called_back(ledger: Ledger, seen: Observations, plan: Plan) -> Iterator[Preempt]:
    """Yield the preemptions that the plan lacks. Jobs that are not preemptible are left alone."""
    taken = {command.job for command in plan.commands if isinstance(command, Preempt)}
    for gpu, parked in seen.parked.items():
        job = ledger.job(ledger.counters.holders.get(gpu, ""))
        attempt = None if job is None else ledger.attempt(job.id, job.attempt)
        if not parked.wanted or job is None or attempt is None or job.stop_request is not None:
            continue
        if not job.spec.preemptible or JobId(job.id) in taken:
            continue
        staying = [it for it in attempt.live_workers if not it.leaving]
        on_it = [it for it in staying if gpu in it.gpus]
        if not on_it:
            continue
        taken.add(JobId(job.id))
        loses = on_it if len(staying) - len(on_it) >= job.spec.least_workers else staying
        gone = tuple(
            Worker(NodeName(it.node), tuple(GpuId(one) for one in it.gpus)) for it in loses
        )
        restart_s = seen.configuration.policy.restart_s
        yield Preempt(JobId(job.id), gone, None, "R3", restart_s * sum(len(it.gpus) for it in gone))
