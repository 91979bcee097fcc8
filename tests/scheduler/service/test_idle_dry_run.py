"""Dry run of the idle rule: the GPU-hours it would have freed, from measurements."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from benchpool_scheduler.configuration import load
from benchpool_scheduler.contract.use import IdleBenches, IdleBenchesQuery
from benchpool_scheduler.errors import Forbidden
from benchpool_scheduler.hub import HubServer, StaticDirectory
from benchpool_scheduler.service import Pool
from benchpool_scheduler.telemetry import HeldSample, Holder
from benchpool_support.clocks import FakeClock
from benchpool_support.measured import steady
from benchpool_support.pools import ADMIN, SUSAN, make_pool, opened

HOUR_S, NOW = 3600.0, 1_800_000_000.0
TOM = Holder(bench="lease-of-tom", server="", user="tom")
JOE = Holder(bench="lease-of-joe", server="lab", user="joe")


def hours(gpu: str, holder: Holder, *parts: tuple[float, float | None]) -> list[HeldSample]:
    """Return samples until now, from pairs of hours and activity; None means no samples."""
    at = NOW - sum(length for length, _ in parts) * HOUR_S
    found: list[HeldSample] = []
    for length, activity in parts:
        end = at + length * HOUR_S
        if activity is not None:
            found += steady(gpu, at, end, activity, holder, span_s=60.0)
        at = end
    return found


async def asked(
    folder: Path,
    samples: list[HeldSample],
    days: float = 1.0,
    minutes: float | None = 60.0,
    rule: str = "{}",
) -> IdleBenches:
    configuration = load(f"version: 1\nidle_benches: {rule}")
    directory = StaticDirectory()
    directory.known_servers = (HubServer("joe", "lab", profile="large"),)
    clock = FakeClock(NOW)
    made = make_pool(folder, configuration=configuration, directory=directory, clock=clock)
    async with opened(made) as pool:
        pool.metering.database.write(samples)
        return await pool.use.idle_benches(ADMIN, IdleBenchesQuery(days, minutes))


async def test_dry_run_counts_idle_time_beyond_limit(tmp_path: Path) -> None:
    samples = [
        *hours("GPU-1", TOM, (1, 0.6), (6, 0.0), (1, 0.6)),
        *hours("GPU-2", TOM, (1, 0.6), (6, 0.0), (1, 0.6)),
        *hours("GPU-3", JOE, (3, 0.0), (1, 0.4), (4, 0.0)),
    ]
    found = await asked(tmp_path, samples)
    of = {one.user: (one.server, one.gpus, one.times) for one in found.rows}
    assert of == {"tom": ("", 2, 1), "joe": ("lab", 1, 2)}
    freed = {one.user: one.gpu_h for one in found.rows}
    assert freed["tom"] == pytest.approx(2 * 5, abs=0.6)
    assert freed["joe"] == pytest.approx(2 + 3, abs=0.6)
    assert found.gpu_h == pytest.approx(sum(freed.values()))
    assert found.measured_gpu_h == pytest.approx(24)
    assert "from 2 servers; 24.0 were measured on benches." in found.text
    assert any("The use of kernels and terminals is not recorded" in it for it in found.notes)


async def test_dry_run_keeps_bench_with_one_busy_gpu(tmp_path: Path) -> None:
    samples = [*hours("GPU-1", TOM, (6, 0.0)), *hours("GPU-2", TOM, (6, 0.3))]
    found = await asked(tmp_path, samples)
    assert found.rows == []
    assert found.text == "No bench was idle for 1 h in the last 1 day, as far as measured."


async def test_dry_run_does_not_count_gaps_as_idle(tmp_path: Path) -> None:
    samples = hours("GPU-1", TOM, (0.75, 0.0), (3, None), (0.75, 0.0), (2, None), (0.5, 0.0))
    found = await asked(tmp_path, samples)
    assert (found.rows, found.gpu_h) == ([], 0.0)


async def test_dry_run_frees_less_with_longer_limit(tmp_path: Path) -> None:
    samples = hours("GPU-1", TOM, (1, 0.6), (6, 0.0))
    freed = [
        (await asked(tmp_path / str(minutes), samples, minutes=minutes)).gpu_h
        for minutes in (30, 60, 240)
    ]
    assert freed == sorted(freed, reverse=True)
    assert freed[-1] > 0


@pytest.mark.parametrize(
    ("rule", "minutes", "used"),
    [
        ("{}", None, 60),
        ("{tell_s: 600, ask_s: 1200, act_s: 7200}", None, 120),
        ("{tell_s: 600, ask_s: 1200, act_s: 7200}", 30.0, 30),
    ],
)
async def test_dry_run_uses_configured_limit_unless_given(
    tmp_path: Path, rule: str, minutes: float | None, used: float
) -> None:
    samples = hours("GPU-1", TOM, (1, 0.6), (6, 0.0))
    found = await asked(tmp_path, samples, minutes=minutes, rule=rule)
    assert found.minutes == used
    assert found.gpu_h == pytest.approx(6 - used / 60, abs=0.4)


YESTERDAY, TOMORROW = (
    (datetime.fromtimestamp(NOW, UTC) + timedelta(days=days)).date() for days in (-1, 1)
)


@pytest.mark.parametrize(
    ("who", "until", "left", "spared"),
    [
        ("tom", TOMORROW, {"joe"}, 1),
        ("profile:large", TOMORROW, {"tom"}, 1),
        ("group:nobody", TOMORROW, {"tom", "joe"}, 0),
        ("tom", YESTERDAY - timedelta(days=9), {"tom", "joe"}, 0),
    ],
)
async def test_dry_run_excludes_and_reports_exempt_benches(
    tmp_path: Path, who: str, until: date, left: set[str], spared: int
) -> None:
    samples = [*hours("GPU-1", TOM, (6, 0.0)), *hours("GPU-2", JOE, (6, 0.0))]
    rule = f"{{exempt: [{{who: '{who}', until: {until}, why: exam}}]}}"
    found = await asked(tmp_path, samples, rule=rule)
    assert {one.user for one in found.rows} == left
    (exemption,) = found.exemptions
    assert (exemption.who, exemption.until, exemption.why) == (who, until, "exam")
    assert exemption.in_force is (until > YESTERDAY)
    assert exemption.servers == spared
    assert exemption.gpu_h == pytest.approx(5.0 * spared, abs=0.4)
    beginning = (
        f"1 server is left out in part or whole, with {exemption.gpu_h:.2f} GPU-hours, as an"
    )
    assert sum(note.startswith(beginning) for note in found.notes) == spared
    assert sum(f"applies to it: {who} until {until}." in note for note in found.notes) == spared


async def test_dry_run_counts_bench_after_exemption_ends(tmp_path: Path) -> None:
    samples = hours("GPU-1", TOM, (40, 0.0))
    rule = f"{{exempt: [{{who: tom, until: {YESTERDAY}}}]}}"
    found = await asked(tmp_path, samples, days=3, rule=rule)
    whole = await asked(tmp_path / "without", samples, days=3)
    today_h = (NOW % 86_400) / HOUR_S
    assert found.gpu_h == pytest.approx(today_h - 1, abs=0.5)
    (exemption,) = found.exemptions
    assert exemption.in_force is False
    assert exemption.gpu_h + found.gpu_h == pytest.approx(whole.gpu_h, abs=0.01)


async def test_dry_run_text_mentions_exempt_benches(tmp_path: Path) -> None:
    rule = f"{{exempt: [{{who: tom, until: {TOMORROW}}}]}}"
    found = await asked(tmp_path, hours("GPU-1", TOM, (6, 0.0)), rule=rule)
    assert found.text.startswith("No bench without an exemption was idle for 1 h")


async def test_dry_run_requires_administrator(tmp_path: Path) -> None:
    pool: Pool
    async with opened(make_pool(tmp_path, clock=FakeClock(NOW))) as pool:
        with pytest.raises(Forbidden):
            await pool.use.idle_benches(SUSAN, IdleBenchesQuery())
        found = await pool.use.idle_benches(ADMIN, IdleBenchesQuery(days=2))
        assert found.text == "No bench was measured in the last 2 days."
