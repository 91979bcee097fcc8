"""Reservations change quotas during their time, and keep the written configuration."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchpool_scheduler.configuration import Configuration, compare, load, written
from benchpool_scheduler.contract import State
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.service.housekeeping.reservation_edges import ReservationEdges
from benchpool_support.lab import LAB, Lab
from benchpool_support.pools import ADMIN, JOE, SUSAN, opened, reached, sleeper, story

HOUR = 3600.0


def text(lab: Lab, gpus: int, begins_h: float, ends_h: float, project: str = "speech") -> str:
    """Return the lab's configuration with a reservation, whose times are hours from now."""
    begins, ends = (
        datetime.fromtimestamp(lab.clock.now() + hours * HOUR, UTC).isoformat(" ")
        for hours in (begins_h, ends_h)
    )
    return story(LAB).text + (
        f"reservations:\n  - {{name: paper, project: {project}, gpus: {gpus}, "
        f'from: "{begins}", until: "{ends}"}}\n'
    )


def quota(configuration: Configuration, project: str) -> int | None:
    found = configuration.project(project)
    assert found is not None
    return found.project.quota


async def test_reservation_raises_quota_during_its_time(tmp_path: Path) -> None:
    lab = Lab(tmp_path, gpus=4)
    async with opened(lab.pool) as pool:
        edges = ReservationEdges(pool.observed, pool.want_pass)
        await pool.configuration.apply(ADMIN, text(lab, 2, 1, 2))
        found = []
        for _ in range(3):
            edges.look()
            found.append(quota(pool.observed.now.configuration, "speech"))
            lab.clock.pass_s(HOUR)
        assert found == [0, 2, 0]
        assert pool.views.quota(JOE).projects[0].reserved == []
        own = written(pool.observed.now.configuration)
        assert (quota(own, "speech"), len(own.reservations)) == (0, 1)


async def test_reservation_preempts_jobs_and_explains_wait(tmp_path: Path) -> None:
    lab = Lab(tmp_path, gpus=4)
    async with opened(lab.pool) as pool:
        edges = ReservationEdges(pool.observed, pool.want_pass)
        await pool.configuration.apply(ADMIN, text(lab, 2, 1, 2))
        running = [await lab.start(SUSAN, sleeper()) for _ in range(4)]
        asks = await pool.jobs.submit(JOE, sleeper(gpus=2))
        assert (await reached(pool, asks.id, State.QUEUED)).state is State.QUEUED
        lab.clock.pass_s(HOUR)
        edges.look()
        for job in running[:0:-1][:2]:
            await reached(pool, job.id, State.PAUSING)
            lab.end(job, 1)
        await lab.begun(asks.id)
        waits = pool.jobs.why(SUSAN, running[-1].id)
        assert waits.reason is not None
        assert "2 GPUs are reserved for project speech until" in waits.reason.remedy
        (mine,) = pool.views.quota(JOE).projects
        (held,) = mine.reserved
        assert (mine.quota, held.name, held.gpus) == (2, "paper", 2)
        assert held.text.startswith("2 of them reserved until ")
        assert "reserved" not in (pool.jobs.why(JOE, asks.id).would_start_with or "")


async def test_reservation_beyond_capacity_is_refused(tmp_path: Path) -> None:
    lab = Lab(tmp_path, gpus=4)
    async with opened(lab.pool) as pool:
        with pytest.raises(
            InvalidInput,
            match=r"3 GPUs would be reserved and all projects together are guaranteed 2 GPUs, and "
            r"training has 4 GPUs",
        ):
            await pool.configuration.apply(ADMIN, text(lab, 3, 1, 2))
        # A past reservation is accepted.
        await pool.configuration.apply(ADMIN, text(lab, 3, -2, -1))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{name: r, project: no, gpus: 1, from: 2026-01-01, until: 2026-01-02}", "not a project"),
        ("{name: r, project: a, gpus: 0, from: 2026-01-01, until: 2026-01-02}", "between 1"),
        ("{name: r, project: a, gpus: 1, from: 2026-01-02, until: 2026-01-01}", "ends before"),
        ("{name: r, project: a, gpus: 1, from: soon, until: 2026-01-01}", "write a time as"),
        ("{name: r, project: a, gpus: 1, until: 2026-01-01}", "has no `from`"),
        ("{name: r, project: a, gpu: 1, from: 2026-01-01, until: 2026-01-02}", "did you mean"),
        (
            "{name: r, project: b, gpus: 1, from: 2026-01-01, until: 2026-01-02}",
            "already guaranteed all GPUs",
        ),
    ],
)
def test_invalid_reservation_is_refused_with_its_position(entry: str, message: str) -> None:
    projects = "projects: [{name: a, quota: 1}, {name: b, quota: unlimited}]"
    with pytest.raises(InvalidInput, match=message) as refused:
        load(f"version: 1\n{projects}\nreservations:\n- {entry}\n")
    assert "line 4" in refused.value.message


def test_reservation_times_default_to_pool_time_zone() -> None:
    base = "version: 1\nprojects: [{name: a, quota: 1}]\ngpu_hours: {time_zone: Europe/Berlin}\n"
    entry = "- {name: r, project: a, gpus: 2, from: 2026-07-01 14:00, until: '2026-07-01 16:00Z'}"
    found = load(f"{base}reservations:\n{entry}\n")
    (one,) = found.reservations
    begins, ends = (datetime.fromtimestamp(at, UTC).hour for at in (one.begins_s, one.ends_s))
    assert (begins, ends) == (12, 16)
    assert compare(load(base), found) == [
        "Reservation r is added: 2 GPUs for project a from 2026-07-01 14:00 to 2026-07-01 18:00 "
        "(Europe/Berlin)."
    ]
    assert compare(found, load(base)) == ["Reservation r is removed."]
