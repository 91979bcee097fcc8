"""``benchpool whatif``: what would be otherwise with another configuration or more GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from benchpool_scheduler.cli import words
from benchpool_scheduler.cli.screen import Cell, Column, Screen
from benchpool_scheduler.cli.session import Session
from benchpool_scheduler.cli.verb import Options, Verb, option
from benchpool_scheduler.contract_whatif import (
    JobNow,
    JobWhatIf,
    ProjectNow,
    ProjectWhatIf,
    WhatIf,
    WhatIfQuestion,
)
from benchpool_scheduler.errors import InvalidInput

PROJECT_COLUMNS = (
    Column("PROJECT", width=18),
    Column("QUOTA", align="right"),
    Column("FAIR SHARE", align="right"),
    Column("ALLOCATED", align="right"),
    Column("WAITING", align="right"),
    Column("PAUSED", align="right"),
)

JOB_COLUMNS = (
    Column("ID"),
    Column("NAME", width=14),
    Column("PROJECT", width=12),
    Column("GPUS", align="right"),
    Column("NOW"),
    Column("THEN", rest=True),
)


def _whatif(session: Session, options: Options) -> int:
    question = WhatIfQuestion(
        config=None if options["config"] is None else read(options["config"]),
        more_gpus=options["more_gpus"],
        gpu_model=options["gpu_model"],
        gpus_per_node=options["gpus_per_node"],
    )
    answer = session.client.whatif(question)
    if session.screen.json:
        session.screen.value(answer)
    else:
        show(session.screen, answer)
    return 0


def read(path: Path) -> str:
    """Return the text of a file. Errors: InvalidInput."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as failed:
        raise InvalidInput(f"{path} cannot be read ({failed}).", field="config") from failed


def show(screen: Screen, answer: WhatIf) -> None:
    """Show who would fare otherwise: the sentence first, then projects, then jobs."""
    screen.heading(words.clean(answer.text))
    for warning in answer.warnings:
        screen.line(f"! {words.clean(warning)}")
    for line in answer.changes:
        screen.line(words.clean(line))
    if answer.projects:
        screen.line()
        screen.table(PROJECT_COLUMNS, map(_project_row, answer.projects))
    if answer.jobs:
        screen.line()
        screen.table(JOB_COLUMNS, map(_job_row, answer.jobs))
    if answer.jobs_left_out:
        screen.line(f"… and {answer.jobs_left_out} more jobs.")
    screen.line("Only looked: nothing was changed.")


def _project_row(project: ProjectWhatIf) -> Sequence[str]:
    sides = (project.before, project.after)
    quotas = (None if it is None else words.bound(it.quota) for it in sides)
    return (
        project.name,
        _change(*quotas),
        *(
            _change(*(_figure(it, name) for it in sides))
            for name in ("fair_share", "allocated", "waiting", "preempted")
        ),
    )


def _figure(project: ProjectNow | None, name: str) -> str | None:
    return None if project is None else str(getattr(project, name))


def _change(before: str | None, after: str | None) -> str:
    """Return a figure, or how it would change.

    >>> _change("2", "2"), _change("2", "4"), _change(None, "4")
    ('2', '2 → 4', '- → 4')
    """
    return before or "-" if before == after else f"{before or '-'} → {after or '-'}"


def _job_row(job: JobWhatIf) -> tuple[str | Cell, ...]:
    return (
        words.short(job.id),
        job.name,
        job.project,
        str(job.gpus),
        _state(job.before),
        _fate(job.after),
    )


def _state(now: JobNow) -> str:
    return f"{now.state} on {now.gpus}" if now.state == "runs" else now.state


def _fate(now: JobNow) -> Cell:
    if now.preempted:
        state = "paused" if now.state == "waits" else _state(now)
        return Cell(f"{state}; loses {now.lost_gpu_s:.0f} GPU s", "yellow")
    if now.reason is not None:
        return Cell(f"{now.state}: {now.reason.text}")
    return Cell(_state(now) + (", moved" if now.moved else ""), "green")


_FILE = click.Path(path_type=Path, dir_okay=False)

WHATIF = Verb(
    ("whatif",),
    "Say who would run, wait and pay with another benchpool.yaml or more GPUs.",
    _whatif,
    (
        option("--config", metavar="FILE", type=_FILE, help="Another benchpool.yaml."),
        option("--more-gpus", type=click.IntRange(min=0), default=0, metavar="N",
               help="So many more GPUs."),
        option("--gpu-model", metavar="NAME", help="Their model; what the pool has most of."),
        option("--gpus-per-node", type=click.IntRange(min=1), metavar="G",
               help="Size of their nodes; what the pool has most of."),
    ),
    "The service's own decision core answers from the pool of this moment; nothing is changed. For "
    "administrators.",
)  # fmt: skip
