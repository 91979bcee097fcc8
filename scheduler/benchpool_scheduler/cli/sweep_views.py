"""Output of sweeps."""

from __future__ import annotations

from collections.abc import Sequence

from benchpool_scheduler.cli import words
from benchpool_scheduler.cli.screen import Column, Screen
from benchpool_scheduler.contract.sweeps import TASK, Scalar, Sweep
from benchpool_scheduler.phrases import gpu_hours

SWEEP_COLUMNS = (
    Column("ID"),
    Column("NAME", width=18),
    Column("STATE"),
    Column("USER", width=12),
    Column("GPU-HOURS", align="right"),
    Column("PROGRESS", rest=True),
)


def sweeps(screen: Screen, found: Sequence[Sweep]) -> None:
    """Print sweeps, one line each."""
    if not found:
        screen.line("No sweeps. `benchpool submit --sweep lr=0.1,0.01 train.py` starts one.")
        return
    screen.table(
        SWEEP_COLUMNS,
        [
            (
                words.short(one.id),
                words.clean(one.name),
                one.state.value,
                words.clean(one.user),
                gpu_hours(one.gpu_hours),
                words.clean(one.problem or one.text),
            )
            for one in found
        ],
    )


def sweep(screen: Screen, one: Sweep) -> None:
    """Print a sweep and its trials, best first."""
    screen.heading(f"{words.short(one.id)} {words.clean(one.name)}, project {one.project}")
    screen.line(words.clean(one.text))
    if one.problem is not None:
        each = "task" if one.plan.array else "trial"
        screen.line(f"The next {each} could not begin: {words.clean(one.problem)}")
    names = [] if one.plan.array else list(one.plan.parameters)
    columns = (
        Column("TASK" if one.plan.array else "TRIAL", align="right"),
        Column("JOB"),
        Column("STATE"),
        Column("STEP", align="right"),
        Column(words.clean(one.plan.metric or "FIGURE"), align="right"),
        *(Column(words.clean(name)) for name in names),
    )
    screen.table(
        columns,
        [
            (
                str(row.parameters.get(TASK, row.number) if one.plan.array else row.number),
                "-" if row.job is None else words.short(row.job),
                row.state if row.state != "open" or row.job_state is None else row.job_state,
                "-" if row.step is None else str(row.step),
                "-" if row.value is None else f"{row.value:.6g}",
                *(_shown(row.parameters.get(name)) for name in names),
            )
            for row in one.trials
        ],
    )


def _shown(value: Scalar | None) -> str:
    text = f"{value:g}" if type(value) is float else f"{value}"
    return "-" if value is None else words.clean(text)
