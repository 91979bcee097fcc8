"""``benchpool whatif``: shows the effects of another configuration or more GPUs."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

import click

from benchpool_scheduler.cli import words
from benchpool_scheduler.cli.plain_verbs import read
from benchpool_scheduler.cli.replay_verb import REPLAY
from benchpool_scheduler.cli.screen import Cell, Column, Screen
from benchpool_scheduler.cli.session import Session
from benchpool_scheduler.cli.verb import Options, Verb, option
from benchpool_scheduler.contract import (
    JobNow,
    JobWhatIf,
    ProjectNow,
    ProjectReplay,
    ProjectWhatIf,
    WhatIf,
    WhatIfQuestion,
    WorkloadWhatIf,
)
from benchpool_scheduler.phrases import gpu_time

WIDTH = 80
"""Maximum length of a line, in characters."""

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


FIGURES = (
    ("GPUs", "gpus", "{}"),
    ("Allocated use", "allocated_utilisation", "{:.1%}"),
    ("Useful use", "useful_utilisation", "{:.1%}"),
    ("Mean wait, h", "mean_wait_h", "{:.2f}"),
    ("Median wait, h", "p50_wait_h", "{:.2f}"),
    ("95 % wait, h", "p95_wait_h", "{:.2f}"),
    ("99 % wait, h", "p99_wait_h", "{:.2f}"),
    ("Short jobs wait, min", "short_job_wait_min", "{:.1f}"),
    ("Mean completion, h", "mean_jct_h", "{:.2f}"),
    ("Pauses per job", "preemptions_per_job", "{:.3f}"),
    ("Lost, GPU h", "lost_gpu_h", "{:.1f}"),
)
"""Figures of a workload: heading, key and number format."""

FIGURE_COLUMNS = (
    Column("WORKLOAD"),
    Column("BEFORE", align="right"),
    Column("AFTER", align="right"),
)

WAIT_COLUMNS = (
    Column("PROJECT", width=18),
    Column("JOBS", align="right"),
    Column("GPU H", align="right"),
    Column("MEAN WAIT, H", align="right"),
    Column("95 % WAIT, H", align="right"),
    Column("PAUSES", align="right"),
)


def _whatif(session: Session, options: Options) -> int:
    declared = None if options["config"] is None else read(options["config"], "config")
    if options["trace"] is not None:
        from benchpool_scheduler.cli import whatif_trace

        workload = whatif_trace.replayed(options, declared)
        if session.screen.json:
            session.screen.value(workload)
        else:
            show_workload(session.screen, workload)
        return 0
    question = WhatIfQuestion(
        config=declared,
        more_gpus=options["more_gpus"],
        gpu_model=options["gpu_model"],
        gpus_per_node=options["gpus_per_node"],
        history_days=options["history"],
    )
    answer = session.client.whatif(question)
    if session.screen.json:
        session.screen.value(answer)
    else:
        show(session.screen, answer)
    return 0


def show(screen: Screen, answer: WhatIf) -> None:
    """Print the effects of a change: the summary first, then projects, then jobs."""
    screen.heading(words.clean(answer.text))
    for warning in answer.warnings:
        screen.line(f"! {words.clean(warning)}")
    for line in (*answer.changes, *answer.people):
        screen.line(words.clean(line))
    if answer.projects:
        screen.line()
        screen.table(PROJECT_COLUMNS, map(_project_row, answer.projects))
    if answer.jobs:
        screen.line()
        screen.table(JOB_COLUMNS, map(_job_row, answer.jobs))
    if answer.jobs_left_out:
        screen.line(f"… and {answer.jobs_left_out} more jobs.")
    if answer.history is not None:
        screen.line()
        show_workload(screen, answer.history)
    screen.line("Preview only: nothing was changed.")


def show_workload(screen: Screen, found: WorkloadWhatIf) -> None:
    """Print the effects on a recorded workload: figures of the pool, then waits by project."""
    screen.heading(found.text)
    if found.left_out:
        screen.line(
            f"! {found.left_out} more jobs are left out: they could never run in one of the pools."
        )
    screen.table(
        FIGURE_COLUMNS,
        [
            (
                heading,
                written.format(getattr(found.before, key)),
                written.format(getattr(found.after, key)),
            )
            for heading, key, written in FIGURES
        ],
    )
    for heading, key, _ in FIGURES:
        if why := found.why.get(key):
            _sentence(screen, f"{heading}: {why}")
    screen.line()
    screen.table(WAIT_COLUMNS, map(_wait_row, found.projects))
    for project in found.projects:
        if project.why:
            _sentence(screen, words.clean(f"{project.name}: {project.why}"))


def _sentence(screen: Screen, text: str) -> None:
    for line in textwrap.wrap(text, WIDTH, subsequent_indent="  "):
        screen.line(line)


def _wait_row(project: ProjectReplay) -> Sequence[str]:
    was, would = project.before, project.after
    return (
        project.name,
        str(project.jobs),
        f"{project.gpu_h:.0f}",
        _change(f"{was.mean_wait_h:.2f}", f"{would.mean_wait_h:.2f}"),
        _change(f"{was.p95_wait_h:.2f}", f"{would.p95_wait_h:.2f}"),
        _change(str(was.preemptions), str(would.preemptions)),
    )


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
    """Return a figure, or its change.

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
        return Cell(f"{state}; loses {gpu_time(now.lost_gpu_s)}", "yellow")
    if now.reason is not None:
        return Cell(f"{now.state}: {now.reason.text}")
    return Cell(_state(now) + (", moved" if now.moved else ""), "green")


_OWN = (*("trace", "policy", "jobs_out", "gpus_per_node", "past", "estimates", "judged_from"),)
REPLAY_OPTIONS = tuple(param for param in REPLAY.params if param.name not in _OWN)
"""Options of ``benchpool replay`` that select the workload and the pool."""

_FILE = click.Path(path_type=Path, dir_okay=False)

WHATIF = Verb(
    ("whatif",),
    "Predict which jobs and projects gain or lose with another benchpool.yaml or more GPUs.",
    _whatif,
    (
        option("--config", metavar="FILE", type=_FILE, help="Another benchpool.yaml."),
        option("--more-gpus", type=click.IntRange(min=0), default=0, metavar="N",
               help="Number of GPUs to add."),
        option("--gpu-model", metavar="NAME",
               help="Model of the added GPUs; by default the most common one."),
        option("--gpus-per-node", type=click.IntRange(min=1), metavar="G",
               help="GPUs of each added node; by default the most common size."),
        option("--history", type=click.FloatRange(min=0, min_open=True), metavar="DAYS",
               help="Also replay the jobs that ended in the last DAYS, before and after."),
        option("--trace", metavar="TRACE", type=_FILE,
               help="Replay this workload without a service; --gpus or --nodes and the options "
               "below describe the pool before the change."),
        *REPLAY_OPTIONS,
    ),
    "The service computes the answer from the present pool and changes nothing. For "
    "administrators. With --trace no service is needed: the quotas are those of --quotas or "
    "--quota-rule before, and those of --config after, on the same GPUs and --more-gpus.",
)  # fmt: skip
