"""Count the runs of schedules over years: sent, late, replaced, missed and doubled.

``python benchmarks/schedules.py [--years N]``: the service's own runner and files with a scripted
clock. It is restarted and killed at random, and stopped for hours over each change of the clock.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from zoneinfo import ZoneInfo

import checkout  # noqa: F401 (makes what tests use importable)

from benchpool_support.schedule_years import HOUR_S, Outage, ScheduleYears, changes, seconds

FIRST_YEAR = 2026
MEMORY = "/dev/shm"
"""Folder in memory, if there is one: the service writes each decision durably."""
ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "America/Havana",
    "Africa/Casablanca",
    "Antarctica/Troll",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "UTC",
)
"""Zones whose clocks change by 60, 120 and 30 minutes, at night and at midnight, or never."""
CRONS = ("0 2 * * *", "30 2 * * *", "15 1 * * 0", "30 */2 * * *", "0 0,12 * * 1-5", "30 * * * *")


def main() -> int:
    """Print a row for each zone and schedule; return 1 if a run was missed or doubled."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--years", type=int, default=1)
    years = parser.parse_args().years
    begun, all_ = time.perf_counter(), Counter[str]()
    print("| zone | times | due | sent | late | replaced | missed | doubled |")
    print("|---|---|---|---|---|---|---|---|")
    kills = outages = 0
    for zone in ZONES:
        for cron in CRONS:
            stopped = list(_outages(zone, years, random.Random(f"{zone} {cron} outages")))
            counts, killed = _counted(zone, cron, years, stopped)
            kills, outages = kills + killed, outages + len(stopped)
            all_.update(counts)
            print(f"| {zone} | `{cron}` | {' | '.join(f'{one:,}' for one in counts.values())} |")
    print(f"| all | | {' | '.join(f'{one:,}' for one in all_.values())} |")
    print(f"\n{kills:,} kills, {outages:,} outages, {time.perf_counter() - begun:.0f} s")
    return int(all_["missed"] + all_["doubled"] > 0)


def _counted(zone: str, cron: str, years: int, stopped: list[Outage]) -> tuple[dict[str, int], int]:
    begin, end = seconds(FIRST_YEAR), seconds(FIRST_YEAR + years)
    memory = MEMORY if Path(MEMORY).is_dir() else None
    with tempfile.TemporaryDirectory(prefix="benchpool-schedules-", dir=memory) as folder:
        chance = random.Random(f"{zone} {cron}")
        one = ScheduleYears(Path(folder), cron, zone, begin, end, chance, stopped)
        return asdict(asyncio.run(one.run())), one.kills


def _outages(zone: str, years: int, chance: random.Random) -> Iterator[Outage]:
    """Yield outages: over every second change of the clock, and about one a week."""
    begin, end = seconds(FIRST_YEAR), seconds(FIRST_YEAR + years)
    for at in changes(ZoneInfo(zone), begin, end)[::2]:
        yield Outage(at - chance.uniform(0, 3) * HOUR_S, at + chance.uniform(0, 3) * HOUR_S)
    for _ in range((end - begin) // (168 * HOUR_S)):
        stopped = chance.uniform(begin, end)
        yield Outage(stopped, stopped + chance.uniform(0.1, 5) * HOUR_S)


if __name__ == "__main__":
    sys.exit(main())
