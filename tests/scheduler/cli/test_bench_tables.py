"""Tables of benches: IDs are complete because users type them, and no sentence is cut."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from benchpool_scheduler.cli import bench_views
from benchpool_scheduler.cli.screen import Screen
from benchpool_scheduler.contract import ParkedBench, ParkStep
from benchpool_scheduler.contract.idle_benches import (
    BenchAct,
    BenchCommand,
    BenchIdleness,
    BenchStep,
)

LEASE = "5kptllwlodlwyvsiwwy7w7s56u"
AT = datetime(2026, 11, 25, 22, 49, tzinfo=UTC)


def printed(capsys: pytest.CaptureFixture[str]) -> tuple[list[str], str]:
    """Return the lines of the output, and all its words as one line."""
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    return lines, " ".join(" ".join(line[51:] for line in lines[1:]).split())


def test_idle_bench_is_listed_with_id_and_next_step(
    capsys: pytest.CaptureFixture[str],
) -> None:
    bench = BenchIdleness(
        lease=LEASE,
        user="susan",
        server="",
        gpus=["GPU-1"],
        step=BenchStep.IDLE,
        idle_s=50.0,
        coverage=1.0,
        kept_until=None,
        keeps_left=2,
        keep_s=3600.0,
        exempt_until=None,
        tell_s=900.0,
        ask_s=2700.0,
        act_s=3600.0,
        act=BenchAct.STOP,
        acts_at=AT + timedelta(hours=1),
        next=BenchStep.TOLD,
        next_at=AT + timedelta(minutes=5),
        command=BenchCommand.NONE,
    )
    bench_views.benches(Screen(), [bench])
    lines, words = printed(capsys)
    assert lines[0].split() == ["LEASE", "OWNER", "GPUS", "STATUS"]
    assert lines[1].split()[:4] == [LEASE, "susan", "(default)", "1"]
    assert words.startswith("idle for 50 s; its owner is ")
    assert words.endswith("at 2026-11-25 22:54 UTC")


def test_parked_bench_is_listed_with_id_and_sentence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "Its GPU is lent, and its kernel waits in the machine's memory until it is restored."
    bench = ParkedBench(LEASE, "susan", "lab", ["GPU-1"], ParkStep.PARKED, AT, 3 * 2**30, text)
    bench_views.parked(Screen(), [bench])
    lines, _ = printed(capsys)
    assert lines[1].split()[:5] == [LEASE, "susan", "lab", "3.0", "GiB"]
    rest = " ".join(" ".join(line[lines[0].index("STATUS") :] for line in lines[1:]).split())
    assert rest == f"parked: {text}"
