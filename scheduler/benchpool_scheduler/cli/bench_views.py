"""What is printed of benches."""

from __future__ import annotations

from benchpool_scheduler.cli import words
from benchpool_scheduler.cli.screen import Column, Screen
from benchpool_scheduler.contract import Lease
from benchpool_scheduler.contract.use import IdleBenches
from benchpool_scheduler.phrases import count, gpu_hours, server_called

IDLE_COLUMNS = (
    Column("USER", width=16),
    Column("SERVER", width=16),
    Column("GPUS", align="right"),
    Column("TIMES", align="right"),
    Column("GPU-HOURS", align="right"),
)


def asked_back(screen: Screen, lease: Lease) -> None:
    """Print whose bench was just asked for, and that it goes on."""
    user, server = words.clean(lease.user), server_called(words.clean(lease.server))
    screen.line(
        f"Asked {user} for {count(len(lease.gpus), 'GPU')} of {server}: {user} reads "
        "it on the pool's page and in JupyterLab. Nothing was stopped."
    )


def idle(screen: Screen, answer: IdleBenches) -> None:
    """Print what idle benches would have given back."""
    screen.heading(words.clean(answer.text))
    if answer.rows:
        screen.table(
            IDLE_COLUMNS,
            [
                (
                    words.clean(one.user),
                    words.clean(one.server) or "(default)",
                    str(one.gpus),
                    str(one.times),
                    gpu_hours(one.gpu_h),
                )
                for one in answer.rows
            ],
        )
    for note in answer.notes:
        screen.line(words.clean(note))
