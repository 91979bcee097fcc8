"""``benchpool submit --sweep``: repeats the same submission with many values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from benchpool_scheduler.cli import words
from benchpool_scheduler.cli.session import Session
from benchpool_scheduler.cli.verb import option
from benchpool_scheduler.client import array_tasks
from benchpool_scheduler.client.sweep_plans import pair_of, plan_of
from benchpool_scheduler.contract import JobSubmission
from benchpool_scheduler.contract.sweeps import (
    MOST_SEED,
    SweepMethod,
    SweepPreview,
    SweepRequest,
)
from benchpool_scheduler.contract.swept_values import FORMS
from benchpool_scheduler.errors import InvalidInput

NOTHING_SENT = "Preview only: nothing was sent."

PARAMS: Sequence[click.Parameter] = (
    option("--sweep", multiple=True, metavar="NAME=VALUES",
           help=f"Run it once for each combination of values: {FORMS}. If a script's words do not "
           "contain {NAME}, --NAME=value is added to them."),
    option("--array", metavar="TASKS[%N]",
           help="Run it once for each task number, at most N at a time, as in Slurm: "
           f"{array_tasks.FORMS}. BENCHPOOL_ARRAY_TASK_ID and SLURM_ARRAY_TASK_ID have it."),
    option("--trials", type=click.IntRange(1), metavar="N",
           help="With --sweep: number of runs; by default all of a grid."),
    option("--method", type=click.Choice([one.value for one in SweepMethod]),
           help="With --sweep: choice of values; by default random if one is a range, else grid."),
    option("--metric", metavar="NAME",
           help="With --sweep: metric, reported by benchpool.log, by which runs are ranked."),
    option("--maximize/--minimize", default=None,
           help="With --metric: which value is better, if its name does not show it."),
    option("--at-once", type=click.IntRange(1), default=4, metavar="N",
           help="With --sweep: maximum number of runs at a time."),
    option("--stop-early", metavar="STEP[:FACTOR]",
           help="With --metric: stop a run at this step unless it is among the best 1/FACTOR, 3 by "
           "default; judged again at each FACTOR times as many steps."),
    option("--gpu-hours", type=click.FloatRange(0, min_open=True), metavar="H",
           help="With --sweep: budget of GPU-hours, after which no further run begins."),
    option("--good-enough", type=float, metavar="X",
           help="With --metric: a run that reports this value or better stops all others."),
    option("--patience", type=click.IntRange(1), metavar="N",
           help="With --metric: no further run begins after N runs in a row without improvement."),
    option("--sweep-seed", type=click.IntRange(0, MOST_SEED), default=0, metavar="N",
           help="With --sweep: seed of the values; another seed draws others."),
    option("--trial-hours", type=click.FloatRange(0, min_open=True), metavar="H",
           help="With --sweep: hours of a complete run, for the estimate of the cost; by default "
           "those of your similar jobs."),
    option("--trial-steps", type=click.IntRange(1), metavar="N",
           help="With --stop-early: steps of a complete run, for the estimate of the cost."),
)  # fmt: skip


def request_of(submission: JobSubmission, options: Mapping[str, Any]) -> SweepRequest:
    """Return the sweep that the options describe. Errors: InvalidInput."""
    length = {name: options[name] for name in ("trial_hours", "trial_steps")}
    if options["array"]:
        plan = array_tasks.plan_of(options["array"])
        return SweepRequest(submission, plan, submission.name, submission.key, **length)
    maximize = options["maximize"]
    plan = plan_of(
        dict(map(pair_of, options["sweep"])),
        goal=None if maximize is None else "maximize" if maximize else "minimize",
        **{name: options[name] for name in _AS_THEY_ARE},
    )
    return SweepRequest(submission, plan, submission.name, submission.key, **length)


_AS_THEY_ARE = (
    *("method", "metric", "trials", "at_once", "stop_early"),
    *("gpu_hours", "good_enough", "patience", "sweep_seed"),
)


def show_preview(session: Session, request: SweepRequest, preview: SweepPreview) -> int:
    """Print the cost of a sweep and the values of its first trials."""
    screen = session.screen
    if screen.json:
        screen.value(preview)
        return 0
    screen.line(preview.text)
    for number, values in enumerate([] if request.plan.array else preview.first):
        shown = " ".join(f"{name}={value}" for name, value in values.items())
        screen.line(words.clean(f"trial {number}: {shown}"))
    screen.line(NOTHING_SENT)
    return 0


def begin(session: Session, request: SweepRequest) -> int:
    """Start a sweep and print how to follow it."""
    sweep = session.client.begin_sweep(request)
    if session.screen.json:
        session.screen.value(sweep)
        return 0
    id_ = words.short(sweep.id)
    session.screen.heading(f"{id_} {words.clean(sweep.name)}, project {sweep.project}")
    session.screen.line(f"Look at it: benchpool sweep {id_}; stop it: benchpool stop-sweep {id_}")
    return 0


def is_many(options: Mapping[str, Any]) -> bool:
    """Return whether the options describe many jobs: a sweep or an array."""
    return bool(options["sweep"] or options["array"])


def check_alone(options: Mapping[str, Any]) -> None:
    """Refuse conflicting options, and sweep options without a sweep. Errors: InvalidInput."""
    if options["wait"] and is_many(options):
        raise InvalidInput(
            "--wait follows one job, but a sweep has many. `benchpool sweep ID` shows it.",
            field="wait",
        )
    if options["sweep"] and not options["array"]:
        return
    beside = {"array", "trial_hours"} if options["array"] else set()
    given = [
        str(param.opts[0]).removeprefix("--")
        for param in PARAMS
        if options[str(param.name)] not in (None, (), param.default) and param.name not in beside
    ]
    if options["array"]:
        array_tasks.check_alone(given)
    elif given:
        raise InvalidInput(
            f"--{given[0].replace('_', '-')} needs --sweep NAME=VALUES.",
            field="sweep",
        )
