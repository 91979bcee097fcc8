"""The page *Fleet* shows the next step of the site's rule for an idle bench, and its time."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from benchpool_scheduler.contract.gpu_use import GpuUse
from benchpool_scheduler.web import fleet_waste
from benchpool_support.idle_site import configuration, made
from benchpool_support.pools import ADMIN, opened


async def test_idle_bench_shows_next_step_or_exemption(
    tmp_path: Path,
) -> None:
    for number, (more, coming, stands) in enumerate(
        (
            ("", "its owner is asked", ""),
            (
                "exempt: [{who: susan, until: 2027-12-31}]",
                "",
                "exempt until 2028-01-01 00:00 UTC",
            ),
        )
    ):
        site = made(tmp_path / str(number), configuration(more=more))
        async with opened(site.pool):
            await site.start()
            await site.rest(20)
            now = datetime.fromtimestamp(site.clock.now(), UTC)
            leases = site.pool.benches.leases(ADMIN)
            use = GpuUse(leases[0].gpus[0], 0, "A100", "n", simulated=True, idle_since=now)
            standing = {one.lease: one for one in site.pool.idle.list(ADMIN)}
            (row,) = fleet_waste.idle_benches(leases, [use], [], standing, now)
            assert (row.coming, row.stands) == (coming, stands)
            assert (row.at is not None) is bool(coming)
