"""Output of benches."""

from __future__ import annotations

from collections.abc import Sequence

from benchpool_scheduler.cli import words
from benchpool_scheduler.cli.screen import Column, Screen
from benchpool_scheduler.contract import Lease, ParkedBench
from benchpool_scheduler.contract.idle_benches import BenchAct, BenchCommand, BenchIdleness
from benchpool_scheduler.contract.use import IdleBenches
from benchpool_scheduler.phrases import (
    bench_goes,
    bench_kept,
    bench_next,
    bench_state,
    count,
    data_size,
    gpu_hours,
    server_called,
)

BENCH_COLUMNS = (
    Column("LEASE"),
    Column("OWNER", width=18),
    Column("GPUS", align="right"),
    Column("STATUS", rest=True, wrap=True),
)
"""Columns of benches. IDs are complete, because they are typed to keep or release a bench."""

IDLE_COLUMNS = (
    Column("USER", width=16),
    Column("SERVER", width=16),
    Column("GPUS", align="right"),
    Column("TIMES", align="right"),
    Column("GPU-HOURS", align="right"),
)
EXEMPT_COLUMNS = (
    Column("EXEMPT", width=24),
    Column("UNTIL"),
    Column("NOW"),
    Column("SERVERS", align="right"),
    Column("GPU-HOURS", align="right"),
    Column("WHY"),
)

PARKED_COLUMNS = (
    Column("LEASE"),
    Column("OWNER", width=18),
    Column("MEMORY", align="right"),
    Column("STATUS", rest=True, wrap=True),
)


def parked(screen: Screen, benches: Sequence[ParkedBench]) -> None:
    """Print the parked benches."""
    if not benches:
        screen.line("No bench is parked.")
        return
    screen.table(
        PARKED_COLUMNS,
        [
            (
                one.lease,
                _whose(one.user, one.server),
                data_size(one.bytes),
                f"{one.step.value}: {words.clean(one.text)}",
            )
            for one in benches
        ],
    )


def reclaim_request(screen: Screen, lease: Lease) -> None:
    """Print that the owner of a bench was asked to release it, and that it keeps running."""
    user, server = words.clean(lease.user), server_called(words.clean(lease.server))
    screen.line(
        f"Asked {user} to release {count(len(lease.gpus), 'GPU')} of {server}. {user} sees the "
        "request on the pool's page and in JupyterLab. Nothing was stopped."
    )


def benches(screen: Screen, found: list[BenchIdleness]) -> None:
    """Print benches and their idle time."""
    if not found:
        screen.line("No bench that you may see holds a GPU.")
        return
    screen.table(
        BENCH_COLUMNS,
        [
            (
                one.lease,
                _whose(one.user, one.server),
                str(len(one.gpus)),
                "; ".join(text for text in (bench_state(one), bench_next(one)) if text),
            )
            for one in found
        ],
    )


def _whose(user: str, server: str) -> str:
    return f"{words.clean(user)} {words.clean(server) or '(default)'}"


def answered(screen: Screen, bench: BenchIdleness) -> None:
    """Print the result of an owner's answer: the bench is kept or released."""
    if bench.kept_until is not None and not bench.asked:
        rule = bench.act is not BenchAct.NONE
        screen.line(bench_kept(bench.kept_until, bench.keeps_left, rule=rule))
        return
    stops = bench.command is not BenchCommand.RELEASE
    screen.line(bench_goes(words.clean(bench.server), len(bench.gpus), stops=stops))


def idle(screen: Screen, answer: IdleBenches) -> None:
    """Print the GPU-hours that idle benches would have released."""
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
    if answer.exemptions:
        screen.table(
            EXEMPT_COLUMNS,
            [
                (
                    words.clean(one.who),
                    str(one.until),
                    "in force" if one.in_force else "ended",
                    str(one.servers),
                    gpu_hours(one.gpu_h),
                    words.clean(one.why),
                )
                for one in answer.exemptions
            ],
        )
