"""Dependencies of a submission: resolved, and refused if they can never be met.

A submission can only name existing jobs, so dependencies have no cycles.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.lifecycle.arrays import ArrayStanding
from benchpool_scheduler.core.lifecycle.dependencies import DependencyVerdict, verdict
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.errors import InvalidInput, NotFound, Refused
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.jobs.lookup import the_one
from benchpool_scheduler.service.ledger.job_index import PREFIX
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.lifecycle.awaited_arrays import why_not
from benchpool_scheduler.store.awaited_job import Awaited
from benchpool_scheduler.store.inbound import Inbound
from benchpool_scheduler.store.records import (
    JobRecord,
)

_ENDED = {JobState.FAILED: "failed", JobState.CANCELLED: "was cancelled"}


def awaited(ledger: Ledger, caller: Caller, spec: JobSpec) -> tuple[Awaited, ...]:
    """Return the jobs and arrays that a submission runs after.

    Errors: NotFound for a job or array of another user; InvalidInput for an ambiguous prefix;
    Refused for one that did not succeed.
    """
    if spec.after_any and not spec.after:
        raise InvalidInput(
            "--after-any needs --after. Name the awaited jobs with --after ID.",
            field="after_any",
        )
    own = [_own(ledger, caller, ref) for ref in spec.after]
    if not spec.after_any:
        _check_successful([it for it in own if isinstance(it, JobRecord)])
        _check_arrays([it for it in own if isinstance(it, ArrayStanding)])
    return tuple({it.id: _awaited(it, spec) for it in own}.values())


def freed(awaits: Sequence[Awaited], spec: JobSpec, now: float) -> float | None:
    """Return ``now`` if all dependencies of a new job are met already, else None."""
    found = verdict((it.outcome for it in awaits), any_end=spec.after_any)
    return now if awaits and found is DependencyVerdict.FREE else None


def _awaited(it: JobRecord | ArrayStanding, spec: JobSpec) -> Awaited:
    if isinstance(it, ArrayStanding):
        return Awaited(it.id, it.name, it.outcome(any_end=spec.after_any), it.size)
    return Awaited(it.id, it.name, None if it.live else it.state)


def _own(ledger: Ledger, caller: Caller, ref: str) -> JobRecord | ArrayStanding:
    exact = ledger.job(ref) or ledger.job(_named(ledger, ref) or "")
    if exact is not None:
        matching = [exact]
    else:
        matching = ledger.job_index.beginning(ref) if len(ref) >= PREFIX else []
    own = [job for job in matching if job.user == caller.name]
    missing = NotFound(
        f"You have no job or array with the id {ref[:40]!r}. A job can wait only for your own "
        "existing jobs and arrays. `benchpool jobs` and `benchpool sweeps` list their "
        "ids.",
        field="after",
    )
    arrays = [] if exact is not None else ledger.arrays.own(caller.name, ref)
    found: list[JobRecord | str] = [*own, *arrays]
    one = the_one(found, ref, "jobs and arrays of yours", missing, "after")
    return one if isinstance(one, JobRecord) else _array(ledger, one)


def _array(ledger: Ledger, sweep: str) -> ArrayStanding:
    found = ledger.arrays.of(sweep)
    if found is None:
        raise InvalidInput(
            f"{sweep[:8]} is a sweep, which can add trials. A job can wait only for "
            "jobs and whole arrays. Name the jobs of its trials.",
            field="after",
        )
    return found


def _named(ledger: Ledger, name: str) -> str | None:
    """Return the ID of the job whose object has this name, in a store of objects."""
    store = ledger.store
    return store.id_named(name) if isinstance(store, Inbound) else None


def _check_successful(jobs: Sequence[JobRecord]) -> None:
    bad = next((job for job in jobs if job.state in _ENDED), None)
    if bad is None:
        return
    raise Refused(
        f"Job {bad.id[:8]} ({bad.name}) {_ENDED[bad.state]} already, so this one would never run. "
        "Send that job again and name its new id, or add --after-any.",
        code="dependency-failed",
        field="after",
        numbers={"job": bad.id, "state": str(bad.state)},
    )


def _check_arrays(arrays: Sequence[ArrayStanding]) -> None:
    for array in arrays:
        state = array.outcome()
        if state not in _ENDED:
            continue
        raise Refused(
            f"{_capital(why_not(array))} already, so this one would never run. Send the array "
            "again and name its new id, or add --after-any.",
            code="dependency-failed",
            field="after",
            numbers={"array": array.id, "state": str(state)},
        )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
