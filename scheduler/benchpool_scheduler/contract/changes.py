"""Fields of an accepted job that may change: one row for each field, and the request body.

To add a field, add it to ``JobChange``, to the rows here and to the arguments of
``JobActions.change``. These rows drive the service's commands and refusals, the spec fields of a
``TrainingJob`` that may change, what its status keeps, options, forms, dialogs, and the buttons of
a reason.
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
    """Body of ``change``: new values of an accepted job. Fields left out stay as they are.

    ``priority`` orders the jobs of a project, highest first. ``workers`` may change while the job
    waits. While it runs, only a job with ``min_workers`` can change them: workers are added when
    there is room, and the last ones are removed at once. All other fields change while the job
    waits or is paused.
    """

    priority: Annotated[Priority, Meta(description=PRIORITY_HELP)] | None = None
    workers: Annotated[WorkerCount, Meta(description="New number of workers.")] | None = None
    gpus: Annotated[GpuCount, Meta(description="GPUs of each worker.", title="GPUs")] | None = None
    time_limit_s: (
        Annotated[Seconds, Meta(description="Time limit of an attempt.", title="Time limit")] | None
    ) = None
    project: Annotated[Name, Meta(description="Project whose quota it uses.")] | None = None
    gpu_models: (
        Annotated[
            tuple[Name, ...],
            Meta(
                max_length=32,
                title="GPU models",
                description="Accepted GPU models, best first, separated by commas; or any.",
                extra_json_schema={"x-empty": "any"},
            ),
        ]
        | None
    ) = None


@dataclass(frozen=True, slots=True)
class Changeable:
    """Field of a job that may change.

    Attributes:
        name: Name in ``JobChange``, and in ``JobSpec`` or ``Job``.
        noun: Name in sentences.
        when: ``always``; ``elastic``: while no GPUs are held, or with ``min_workers``;
            ``waiting``: while no GPUs are held.
        unit: Unit that the number counts, empty for none.
        written: Users may also write it into the ``spec`` of a ``TrainingJob``.
        advised: Key in a reason's numbers of a value with which the job would start now.
        press: Text of the button for that value, with ``{value}`` in words.
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
    # Project membership is not checked for an edited object, so its spec leaves out the project.
    Changeable("project", "project", written=False),
    Changeable("gpu_models", "GPU models", advised="would_start_on", press="Accept {value}"),
)

ROWS: Mapping[str, Changeable] = {row.name: row for row in CHANGEABLE}
WRITTEN = tuple(row.name for row in CHANGEABLE if row.written)
WAITING = tuple(row.name for row in CHANGEABLE if row.when == "waiting")

_FIELDS: Mapping[str, Field] = {field.name: field for field in fields(JobChange)}


def in_words(name: str, value: Any) -> str:
    """Return a field and its value in words.

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
    """Return all changeable values of a job in words."""
    has = ((row.name, getattr(job, row.name)) for row in CHANGEABLE)
    return ", ".join(in_words(name, value) for name, value in has if value is not None)


@dataclass(frozen=True, slots=True)
class Advised:
    """Change with which a job would start now, from the numbers of its reason.

    ``text`` is the value as a form or an option takes it. ``label`` is the text of the button.
    """

    name: str
    text: str
    label: str


def advice_of(reason: Reason | None) -> Iterator[Advised]:
    """Yield the changes that a reason advises.

    >>> [it.label for it in advice_of(Reason("pool-full", "", {"would_start_with": 2}, ""))]
    ['Start with 2 GPUs']
    """
    for row in CHANGEABLE:
        value = None if reason is None or not row.advised else reason.numbers.get(row.advised)
        if isinstance(value, int | str):
            text = value if isinstance(value, str) else shown(_FIELDS[row.name], value)
            yield Advised(row.name, text, row.press.format(value=_pressed(row, value)))


def _pressed(row: Changeable, value: int | str) -> str:
    """Return a value as a button shows it."""
    if isinstance(value, str):
        return value
    return count(value, row.unit) if row.unit else exactly(value)


def advised(job: Job) -> tuple[Advised, ...]:
    """Return the changes that the reason of a queued job advises, if the job may be changed."""
    may = job.state is State.QUEUED and "change" in job.actions
    return tuple(advice_of(job.reason)) if may else ()
