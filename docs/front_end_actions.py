"""The questions of JupyterLab's panel before an action on a job, from the table of operations."""

from __future__ import annotations

import json
from typing import Any

from benchpool_scheduler.contract.actions import ActionReason, JobActions
from benchpool_scheduler.contract.changes import CHANGEABLE
from benchpool_scheduler.contract.forms import Field, fields
from benchpool_scheduler.contract.operation import Operation, declared
from benchpool_scheduler.contract.operations.access import AccessOperations
from benchpool_scheduler.contract.operations.runs import RunOperations
from benchpool_scheduler.contract.twins import flag

HEAD = """\
// Generated from the table of operations by docs/generate.py: do not edit.

/**
 * Input field with the bounds of the service; null is no bound. `names` are separated by commas,
 * and shown as `empty` if there are none. A `duration` is in seconds and written as `90m`. An
 * `erasable` field may be emptied.
 */
export interface IActionField {
  readonly name: string;
  readonly title: string;
  readonly help: string;
  readonly kind: 'text' | 'whole' | 'number' | 'names' | 'duration';
  readonly least: number | null;
  readonly most: number | null;
  readonly longest: number | null;
  readonly empty: string;
  readonly erasable: boolean;
}

/**
 * Changeable option of a job: its noun in messages, the unit of its number, the number in a reason
 * with which the job would start now, and the button for it.
 */
export interface IChangeable {
  readonly name: string;
  readonly noun: string;
  readonly unit: string;
  readonly advised: string;
  readonly press: string;
}

/**
 * Action with fields to fill in. `done` is the message afterwards, with `{name}` and other keys of
 * the job. `ended`: it is also available for ended jobs.
 */
export interface IFilledAction {
  readonly name: string;
  readonly label: string;
  readonly summary: string;
  readonly done: string;
  readonly ended: boolean;
  readonly fields: readonly IActionField[];
}

"""


ROW_KEYS = ("name", "noun", "unit", "advised", "press")


def text() -> str:
    """Return the file of the front end."""
    filled = [_action(one) for one in declared(JobActions) if _is_filled(one)]
    names = " | ".join(f"'{one['name']}'" for one in filled)
    values = json.dumps(filled, indent=2, ensure_ascii=False)
    rows = [{key: getattr(row, key) for key in ROW_KEYS} for row in CHANGEABLE]
    changeable = json.dumps(rows, indent=2, ensure_ascii=False)
    return (
        f"{HEAD}export type FilledAction = {names};\n\n"
        f"export const FILLED_ACTIONS: readonly (IFilledAction & {{ readonly name: FilledAction "
        f"}})[] = {values};\n\n"
        f"export const CHANGEABLE: readonly IChangeable[] = {changeable};\n\n"
        f"{_jobs()}\n{_access()}"
    )


def _jobs() -> str:
    """Return the possible changes of a job: its verb in a terminal, its fields' options."""
    rows = {
        one.name: {
            "words": " ".join(one.verb.words),
            "positional": one.verb.positional,
            "options": {field.name: flag(field.name) for field in fields(one.body)},
        }
        for one in (*declared(JobActions), *declared(RunOperations))
        if one.verb is not None and one.body is not None
    }
    return (
        "/** Actions on a job: the command in a terminal, and the options of the fields. */\n"
        f"export const JOB_VERBS = {json.dumps(rows, indent=2)} as const;\n"
    )


def _access() -> str:
    """Return the actions on access requests to a project."""
    asked = [one for one in declared(AccessOperations) if one.body is not None and one.lab]
    rows = {
        one.name: {
            "path": f"/{one.path}",
            "words": " ".join(one.verb.words),
            "positional": one.verb.positional,
        }
        for one in asked
        if one.verb is not None
    }
    return (
        "/** Actions on access requests: the path, and the command in a terminal. */\n"
        f"export const ACCESS = {json.dumps(rows, indent=2)} as const;\n"
    )


def _is_filled(one: Operation[Any]) -> bool:
    return one.form is not None and one.body not in (None, ActionReason)


def _action(one: Operation[Any]) -> dict[str, Any]:
    if one.form is None or one.body is None:
        raise LookupError(f"{one.name} has no form")
    return {
        "name": one.name,
        "label": one.form.label,
        "summary": one.summary,
        "done": one.form.done,
        "ended": one.form.ended,
        "fields": [_field(field) for field in fields(one.body)],
    }


def _field(field: Field) -> dict[str, Any]:
    keys = ("name", "title", "help", "kind", "least", "most", "longest", "empty", "erasable")
    return {key: getattr(field, key) for key in keys}
