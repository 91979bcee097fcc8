"""Print the results of ``benchpool simulate``, and return its exit status."""

from __future__ import annotations

import json as codec
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from benchpool_scheduler.core.model import JobFacts, Plan, WaitReason
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.simulation import cases, divisions
from benchpool_scheduler.simulation.outcomes import CaseOutcome, nodes_of, try_case

SUPPORTED = ("fractions", "elastic", "topology", "types", "consolidation")
"""Optional abilities of this build; cases that need another one are skipped by name."""

Echo = Callable[[str], object]


def run(
    files: Sequence[Path],
    *,
    case: str | None = None,
    json: bool = False,
    explain: bool = False,
    echo: Echo = print,
) -> int:
    """Run the cases of some files and print a line for each.

    Returns:
        0 if all cases pass, 1 if a case failed.

    Raises:
        InvalidInput: The input is invalid (exit status 2).
    """
    chosen = [c for path in files for c in cases.load(path, SUPPORTED) if case in (None, c.name)]
    if not chosen:
        wanted = "contains no case" if case is None else f"contains no case {case}"
        raise InvalidInput(f"{', '.join(map(str, files)) or 'no file'} {wanted}; name another")
    outcomes = [try_case(one) for one in chosen]
    if json:
        echo(codec.dumps([_as_json(outcome) for outcome in outcomes], indent=2))
    else:
        for outcome in outcomes:
            for line in _lines(outcome, explain=explain):
                echo(line)
        echo(_tally([outcome.result for outcome in outcomes]))
    return int(any(outcome.result == "FAIL" for outcome in outcomes))


def run_shares(files: Sequence[Path], *, json: bool = False, echo: Echo = print) -> int:
    """Check files of share divisions (R4, R5) and print a line for each; see ``run``."""
    results = [divisions.check(one) for path in files for one in divisions.load(path)]
    if not results:
        raise InvalidInput("the files contain no division; name another")
    if json:
        echo(codec.dumps([asdict(result) for result in results], indent=2))
    else:
        for result in results:
            echo(_line(result.result, result.name, result.differences))
        echo(_tally([result.result for result in results]))
    return int(any(result.result == "FAIL" for result in results))


def _line(result: str, name: str, differences: Sequence[str]) -> str:
    return f"{result:<4} {name}" + (f": {'; '.join(differences)}" if differences else "")


def _tally(results: Sequence[str]) -> str:
    ok, failed, skipped = (results.count(result) for result in ("ok", "FAIL", "skip"))
    return f"{ok} ok, {failed} failed, {skipped} skipped"


def _lines(outcome: CaseOutcome, *, explain: bool) -> Iterator[str]:
    yield _line(outcome.result, outcome.case.name, outcome.differences)
    if explain and outcome.played is not None and outcome.played.plan is not None:
        reasons = outcome.played.plan.reasons
        for job in outcome.played.snapshot.jobs:
            if (reason := reasons.get(job.id)) is not None:
                yield f"     {job.id}: {reason.text}; {reason.remedy}"


def _as_json(outcome: CaseOutcome) -> dict[str, object]:
    answer: dict[str, object] = {"case": outcome.case.name, "result": outcome.result}
    if outcome.differences:
        answer["differences"] = list(outcome.differences)
    played = outcome.played
    if played is None or played.plan is None:
        return answer
    plan = played.plan
    return answer | {
        "passes": played.passes,
        "jobs": {job.id: _job_as_json(job, plan) for job in played.snapshot.jobs},
        "preempted": sorted(played.preempted),
        "moved": sorted(played.moved),
        "shares": {name: asdict(share) for name, share in plan.shares.items()},
        "pass_ms": round(played.slowest_ms, 3),
    }


def _job_as_json(job: JobFacts, plan: Plan) -> dict[str, object]:
    return {
        "state": job.activity.value,
        "workers": len(job.held),
        "nodes": nodes_of(job),
        "reason": _reason_as_json(plan.reasons.get(job.id)),
    }


def _reason_as_json(reason: WaitReason | None) -> dict[str, object] | None:
    if reason is None:
        return None
    return {
        "code": reason.code.value,
        "text": reason.text,
        "numbers": dict(reason.numbers),
        "remedy": reason.remedy,
    }
