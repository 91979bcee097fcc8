"""Submission of a trial: the sweep's submission with the trial's values filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec.structs import replace

from benchpool_scheduler.contract import (
    CommandEntry,
    JobSubmission,
    ModuleEntry,
    NotebookEntry,
    PodsEntry,
    ScriptEntry,
)
from benchpool_scheduler.contract.submission import Entry
from benchpool_scheduler.contract.sweeps import TASK, Scalar, SweepPlan, trial_priority
from benchpool_scheduler.curves.parameters import argument_text
from benchpool_scheduler.store.sweep_files import SweepRecord
from benchpool_scheduler.sweeps import arrays

_WORD = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_MOST_NAME = 100


def of_record(sweep: SweepRecord, number: int, values: Mapping[str, Scalar]) -> JobSubmission:
    """Return the submission of a trial of a sweep, or of a task of an array."""
    if not sweep.plan.array:
        return of_trial(sweep.submission, sweep.name, number, values)
    return of_task(sweep.submission, sweep.name, sweep.id, sweep.plan, values)


def of_task(
    sent: JobSubmission, name: str, array: str, plan: SweepPlan, values: Mapping[str, Scalar]
) -> JobSubmission:
    """Return the submission of a task of an array; variables set by the user are kept.

    >>> from benchpool_scheduler.contract.sweeps import ListedValues
    >>> sent = JobSubmission(entry=ScriptEntry("fold.py", ["{array_task_id}", "--quick"]))
    >>> plan = SweepPlan({TASK: ListedValues([5, 6])}, array=True)
    >>> task = of_task(sent, "folds", "k7", plan, {TASK: 6})
    >>> task.name, task.entry.args, task.env["SLURM_ARRAY_TASK_ID"]
    ('folds #6', ['6', '--quick'], '6')
    """
    entry = sent.entry
    if isinstance(entry, ScriptEntry | ModuleEntry):
        entry = replace(entry, args=[_put(word, values) for word in entry.args])
    elif isinstance(entry, CommandEntry):
        entry = replace(entry, argv=[_put(word, values) for word in entry.argv])
    exported = replace(sent, env={**arrays.variables(array, plan, values), **sent.env})
    task = _placed(exported, name, int(values[TASK]), values)
    return replace(task, entry=entry, parameters={**sent.parameters, **values})


def of_trial(
    sent: JobSubmission, sweep: str, number: int, values: Mapping[str, Scalar]
) -> JobSubmission:
    """Return the submission of a trial.

    Args:
        sent: Submission of the sweep. ``sweep``: name of the sweep.

    >>> sent = JobSubmission(entry=ScriptEntry("train.py", ["--lr={lr}"]))
    >>> trial = of_trial(sent, "rates", 2, {"lr": 0.01})
    >>> trial.entry, trial.priority
    (ScriptEntry(path='train.py', args=['--lr=0.01']), 40)
    >>> sent = JobSubmission(entry=ScriptEntry("train.py", ["--quick"]))
    >>> of_trial(sent, "rates", 2, {"lr": 0.01, "bias": True}).entry.args
    ['--quick', '--lr=0.01', '--bias=true']
    """
    return replace(_placed(sent, sweep, number, values), entry=_filled(sent.entry, values))


def _placed(
    sent: JobSubmission, sweep: str, number: int, values: Mapping[str, Scalar]
) -> JobSubmission:
    end = f" #{number}"
    return replace(
        sent,
        name=f"{sweep[: _MOST_NAME - len(end)]}{end}",
        key=None,
        priority=trial_priority(sent.priority),
        parameters={**sent.parameters, **values},
        env={
            "WANDB_RUN_GROUP": sweep,
            **{name: _put(text, values) for name, text in sent.env.items()},
        },
        output_dir=None if sent.output_dir is None else f"{sent.output_dir}/{number:03}",
    )


def _filled(entry: Entry, values: Mapping[str, Scalar]) -> Entry:
    match entry:
        case ScriptEntry() | ModuleEntry():
            if any(name in values for word in entry.args for name in _WORD.findall(word)):
                return replace(entry, args=[_put(word, values) for word in entry.args])
            named = [f"--{name}={argument_text(value)}" for name, value in values.items()]
            return replace(entry, args=[*entry.args, *named])
        case CommandEntry():
            return replace(entry, argv=[_put(word, values) for word in entry.argv])
        case NotebookEntry():
            return replace(entry, fill=True)
        case PodsEntry():
            return entry  # users cannot submit these


def _put(text: str, values: Mapping[str, Scalar]) -> str:
    """Replace the named placeholders by values; other braces stay as they are."""
    return _WORD.sub(
        lambda found: argument_text(values[found[1]]) if found[1] in values else found[0], text
    )
