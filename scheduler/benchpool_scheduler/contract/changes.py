"""What of an accepted job may be otherwise later: one row for each field, and the body that asks.

A further field is a field of ``JobChange``, a row here and an argument of ``JobActions.change``.
The service's commands and refusals, the wishes that a ``TrainingJob`` is heard for, what its status
keeps, options, forms, dialogs and the buttons of a reason are read from these rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from benchpool_scheduler.contract.forms import Field, fields, shown
from benchpool_scheduler.contract.jobs import Job, Reason, State
from benchpool_scheduler.contract.scalars import (
    PRIORITY_HELP,
    GpuCount,
    Name,
    Priority,
    Seconds,
    WorkerCount,
)
from benchpool_scheduler.phrases import count, exactly


class JobChange(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``change``: what an accepted job is to have from now on; the rest stays as it is.

    ``priority`` is its turn inside its project, higher first. ``workers`` may change while it
    waits; while it runs only for a job with ``min_workers``: more come when there is room, the
    last ones go at once. All else changes while it waits or is paused.
    """

    priority: Annotated[Priority, Meta(description=PRIORITY_HELP)] | None = None
    workers: Annotated[WorkerCount, Meta(description="Workers from now on.")] | None = None
    gpus: Annotated[GpuCount, Meta(description="GPUs of each worker.", title="GPUs")] | None = None
    time_limit_s: (
        Annotated[Seconds, Meta(description="It is ended after so long.", title="Time limit")]
        | None
    ) = None
    project: Annotated[Name, Meta(description="Whose quota it runs on.")] | None = None
    gpu_models: (
        Annotated[
            tuple[Name, ...],
            Meta(
                max_length=32,
                title="GPU models",
                description="GPU models it accepts, best first, with commas between them; or any.",
                extra_json_schema={"x-empty": "any"},
            ),
        ]
        | None
    ) = None


@dataclass(frozen=True, slots=True)
class Changeable:
    """A field that may change.

    Attributes:
        name: That of ``JobChange``, and of ``JobSpec`` or ``Job``.
        noun: What sentences call it. ``unit``: what its number counts, empty for none.
        when: ``always``; ``elastic``: while no GPUs are held, or with ``min_workers``;
            ``waiting``: while no GPUs are held.
        written: People may also write it into the ``spec`` of a ``TrainingJob``.
        advised: The number of a reason that holds a value with which the job would start now.
        press: The button for that, with ``{value}`` in words.
    """

    name: str
    noun: str
    when: Literal["always", "elastic", "waiting"] = "waiting"
    unit: str = ""
    written: bool = True
    advised: str = ""
    press: str = ""


CHANGEABLE = (
    Changeable("priority", "priority", "always"),
    Changeable("workers", "workers", "elastic", unit="worker"),
    Changeable("gpus", "GPUs", unit="GPU", advised="would_start_with", press="Start with {value}"),
    Changeable(
        "time_limit_s", "time limit", advised="would_start_limited_to", press="End it after {value}"
    ),
    # Who edits an object is not asked for membership, so its spec says nothing of this one.
    Changeable("project", "project", written=False),
    Changeable("gpu_models", "GPU models", advised="would_start_on", press="Accept {value}"),
)

ROWS: Mapping[str, Changeable] = {row.name: row for row in CHANGEABLE}
WRITTEN = tuple(row.name for row in CHANGEABLE if row.written)
WAITING = tuple(row.name for row in CHANGEABLE if row.when == "waiting")

_FIELDS: Mapping[str, Field] = {field.name: field for field in fields(JobChange)}


def in_words(name: str, value: Any) -> str:
    """Return a field with its value.

    >>> in_words("priority", 80), in_words("gpus", 1), in_words("time_limit_s", 5400)
    ('priority 80', '1 GPU', 'time limit 1 h 30 min')
    >>> in_words("gpu_models", ("H100", "A100")), in_words("gpu_models", ())
    ('GPU models H100, A100', 'any GPU models')
    """
    row, field = ROWS[name], _FIELDS[name]
    if row.unit:
        return count(value, row.unit)
    text = shown(field, value) if not name.endswith("_s") else exactly(value)
    return f"{text} {row.noun}" if text == field.empty else f"{row.noun} {text}"


def all_in_words(job: Job) -> str:
    """Return what a job has of all that may change."""
    has = ((row.name, getattr(job, row.name)) for row in CHANGEABLE)
    return ", ".join(in_words(name, value) for name, value in has if value is not None)


@dataclass(frozen=True, slots=True)
class Advised:
    """A change with which a job would start now, as its reason says.

    ``text`` is its value as a form or an option takes it, ``label`` that of its button.
    """

    name: str
    text: str
    label: str


def advice_of(reason: Reason | None) -> Iterator[Advised]:
    """Yield what a reason advises.

    >>> [it.label for it in advice_of(Reason("pool-full", "", {"would_start_with": 2}, ""))]
    ['Start with 2 GPUs']
    """
    for row in CHANGEABLE:
        value = None if reason is None or not row.advised else reason.numbers.get(row.advised)
        if isinstance(value, int | str):
            text = value if isinstance(value, str) else shown(_FIELDS[row.name], value)
            yield Advised(row.name, text, row.press.format(value=_pressed(row, value)))


def _pressed(row: Changeable, value: int | str) -> str:
    """Return a value as a button says it."""
    if isinstance(value, str):
        return value
    return count(value, row.unit) if row.unit else exactly(value)


def advised(job: Job) -> tuple[Advised, ...]:
    """Return what the reason of a waiting job advises, where the job may be changed."""
    may = job.state is State.QUEUED and "change" in job.actions
    return tuple(advice_of(job.reason)) if may else ()
