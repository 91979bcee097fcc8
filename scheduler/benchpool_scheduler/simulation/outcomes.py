"""Compare the result of a case with its expectation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchpool_scheduler.core.capacity.placement import NODE_LEVEL
from benchpool_scheduler.core.model import JobFacts, Snapshot
from benchpool_scheduler.simulation.cases import Case, Expected
from benchpool_scheduler.simulation.passes import Played, keep_still, play


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """The result of one case: ``ok``, ``FAIL`` with differences, or ``skip``."""

    case: Case
    result: str
    differences: tuple[str, ...] = ()
    played: Played | None = None


def try_case(case: Case) -> CaseOutcome:
    """Run a case and compare its result."""
    if case.snapshot is None:
        return CaseOutcome(case, "skip", (f"needs {case.missing}",))
    played = play(case.snapshot, case.rounds)
    differences = list(_differences(case, played))
    keep_still(played, case.stable)
    if played.restless is not None:
        differences.append(f"pass {played.restless} changed the state although nothing happened")
    elif not differences:
        differences = list(_differences(case, played))
    differences = [*played.broken, *differences]
    return CaseOutcome(case, "FAIL" if differences else "ok", tuple(differences), played)


def _differences(case: Case, played: Played) -> Iterator[str]:
    jobs = {job.id: job for job in played.snapshot.jobs}
    for name, expected in (case.expect or {}).items():
        job = next(job for job_id, job in jobs.items() if job_id == name)
        yield from _compare(job, expected, played.snapshot)
    if case.preempted is not None and case.preempted != played.preempted:
        yield f"preempted {_set(played.preempted)}, not {_set(case.preempted)}"
    if case.moved is not None and case.moved != played.moved:
        yield f"moved {_set(played.moved)}, not {_set(case.moved)}"


def _compare(job: JobFacts, expected: Expected, snapshot: Snapshot) -> Iterator[str]:
    if expected.state is not None and expected.state != job.activity.value:
        yield f"{job.id} is {job.activity.value}, not {expected.state}"
    if expected.workers is not None and expected.workers != len(job.held):
        yield f"{job.id} has {len(job.held)} workers, not {expected.workers}"
    nodes = nodes_of(job)
    if expected.nodes is not None and list(expected.nodes) != nodes:
        yield f"{job.id} is on {_set(nodes)}, not {_set(expected.nodes)}"
    if expected.domain is not None and (domains := _domains(job, snapshot)) != {expected.domain}:
        yield f"{job.id} is in {_set(domains)}, not {expected.domain}"


def nodes_of(job: JobFacts) -> list[str]:
    """Return the node of each worker, in alphabetical order."""
    return sorted(worker.node for worker in job.held)


def _domains(job: JobFacts, snapshot: Snapshot) -> set[str]:
    """Return the topology labels of the job's nodes, at the required or the preferred level."""
    level = job.spec.required_level or job.spec.preferred_level
    if level is None or level == NODE_LEVEL:
        return set(nodes_of(job))
    labels = {node.name: node.labels for node in snapshot.nodes}
    return {labels[worker.node].get(level, "") for worker in job.held}


def _set(names: object) -> str:
    words = sorted(str(name) for name in names)  # type: ignore[attr-defined]
    return "[" + ", ".join(words) + "]"
