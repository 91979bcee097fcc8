"""Build quotas are checked atomically; leases survive restarts and end with their server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchpool_scheduler.contract import GpuState, Lease, LeaseRequest, LineRequest, State
from benchpool_scheduler.errors import Forbidden, Refused, Unavailable
from benchpool_scheduler.hub import HeldBench, HubServer, HubUser, StaticDirectory
from benchpool_scheduler.runtime import DeviceState
from benchpool_scheduler.service.benches.reservations import GONE_S
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import (
    ADMIN,
    HUB,
    JOE,
    SUSAN,
    make_pool,
    opened,
    reached,
    sleeper,
    story,
    until_job,
)
from benchpool_support.scripted import ScriptedRuntime, devices

TWO_EACH = story(
    """
version: 1
build: {users: {susan: 2, joe: 1}}
projects: [{name: p, quota: 2, members: [susan, joe]}]
"""
)


def ask(user: str = "susan", server: str = "", gpus: int = 1, spawn: str = "1") -> LeaseRequest:
    return LeaseRequest(user=user, server=server, spawn=spawn, gpus=gpus)


async def test_concurrent_starts_never_exceed_build_quota(
    tmp_path: Path,
) -> None:
    runtime = ScriptedRuntime(devices(8))
    async with opened(make_pool(tmp_path, configuration=TWO_EACH, runtime=runtime)) as pool:
        asks = [pool.benches.reserve(HUB, ask(server=f"s{i}")) for i in range(6)]
        answers = await asyncio.gather(*asks, return_exceptions=True)
        held = [answer for answer in answers if isinstance(answer, Lease)]
        refused = [answer for answer in answers if isinstance(answer, Refused)]
        assert (len(held), len(refused)) == (2, 4)
        assert len({gpu for lease in held for gpu in lease.gpus}) == 2
        assert refused[0].code == "build-quota"
        assert refused[0].numbers == {"asked": 1, "quota": 2, "held": 2, "rule": "user susan"}
        assert "1 by 's0'" in refused[0].message
        assert pool.views.quota(SUSAN).build.free == 0


async def test_repeated_start_returns_same_lease(tmp_path: Path) -> None:
    runtime = ScriptedRuntime(devices(8))
    async with opened(make_pool(tmp_path, configuration=TWO_EACH, runtime=runtime)) as pool:
        first = await pool.benches.reserve(HUB, ask(gpus=2))
        assert await pool.benches.reserve(HUB, ask(gpus=2)) == first
        with pytest.raises(Refused):
            await pool.benches.reserve(HUB, ask(gpus=2, spawn="2"))


class Guarded(ScriptedRuntime):
    """Runtime whose GPU n has the device file 195:n."""

    def denied_devices(self, gpus: Sequence[str]) -> list[tuple[int, int]]:
        return [(195, gpu.index) for gpu in self.gpus if gpu.uuid not in gpus]


async def test_lease_lists_denied_device_files(
    tmp_path: Path,
) -> None:
    runtime = Guarded(devices(4))
    async with opened(make_pool(tmp_path, configuration=TWO_EACH, runtime=runtime)) as pool:
        lease = await pool.benches.reserve(HUB, ask(gpus=2))
        others = [gpu.index for gpu in runtime.gpus if gpu.uuid not in lease.gpus]
        assert lease.denied_devices == [(195, index) for index in others]
        assert len(others) == 2
        answer = await pool.benches.wait_in_line(HUB, LineRequest(ask(gpus=2)))
        assert answer.lease == lease


async def test_lease_survives_restart_and_is_released_once(tmp_path: Path) -> None:
    runtime = ScriptedRuntime(devices(8))
    async with opened(make_pool(tmp_path, configuration=TWO_EACH, runtime=runtime)) as pool:
        lease = await pool.benches.reserve(HUB, ask(gpus=2))
    again = make_pool(tmp_path, configuration=TWO_EACH, runtime=ScriptedRuntime(devices(8)))
    async with opened(again) as pool:
        assert pool.benches.leases(SUSAN) == [lease]
        await pool.benches.release(HUB, lease.id)
        await pool.benches.release(HUB, lease.id)
        assert pool.benches.leases(SUSAN) == []


async def test_build_quota_prefers_user_over_group_property_over_group(
    tmp_path: Path,
) -> None:
    configuration = story(
        "{version: 1, build: {default: 1, groups: {staff: 2}, users: {susan: 3}}}"
    )
    directory = StaticDirectory(
        (
            HubUser("susan", groups={"lab": 5}),
            HubUser("joe", groups={"lab": 4, "staff": None}),
            HubUser("jemma", groups={"staff": None}),
        )
    )
    pool = make_pool(
        tmp_path,
        configuration=configuration,
        gpus=16,
        directory=directory,
        runtime=ScriptedRuntime(devices(16)),
    )
    async with opened(pool):
        found = {
            user: pool.views.quota(ADMIN, user).build for user in ("susan", "joe", "jemma", "eve")
        }
    assert {user: (build.quota, build.rule) for user, build in found.items()} == {
        "susan": (3, "user susan"),
        "joe": (4, "property of group lab"),
        "jemma": (2, "group staff"),
        "eve": (1, "default"),
    }


async def test_reserved_bench_gpus_stay_free_under_job_load(tmp_path: Path) -> None:
    runtime = ScriptedRuntime(devices(5))
    async with opened(make_pool(tmp_path, configuration=TWO_EACH, runtime=runtime)) as pool:
        for _ in range(5):
            await pool.jobs.submit(SUSAN, sleeper())
        await runtime.until_launched(2)
        lease = await pool.benches.reserve(HUB, ask(gpus=2))
        busy = {gpu for launch in runtime.launched.values() for gpu in launch.gpus}
        assert len(lease.gpus) == 2
        assert not busy & set(lease.gpus)
        counts = pool.views.status(ADMIN).counts
        assert (counts[GpuState.BUILD_HELD], counts[GpuState.BUILD_FREE]) == (2, 1)
        assert len(runtime.launched) == 2


async def test_too_few_usable_gpus_are_reported_with_number(tmp_path: Path) -> None:
    runtime = ScriptedRuntime(devices(3))
    runtime.mark("GPU-0", DeviceState.FOREIGN)
    runtime.mark("GPU-1", DeviceState.BROKEN, "it fell off the bus")
    async with opened(make_pool(tmp_path, configuration=TWO_EACH, runtime=runtime)) as pool:
        with pytest.raises(Unavailable, match="are not free: 1 on one machine") as caught:
            await pool.benches.reserve(HUB, ask(gpus=2))
        assert caught.value.code == "build-capacity"
        assert caught.value.message.endswith(
            "Try again when GPUs can be used again, or start with at most 1 GPU."
        )
        assert (await pool.benches.reserve(HUB, ask(gpus=1))).gpus == ["GPU-2"]


async def test_only_hub_reserves_and_releases_leases(tmp_path: Path) -> None:
    runtime = ScriptedRuntime(devices(8))
    async with opened(make_pool(tmp_path, configuration=TWO_EACH, runtime=runtime)) as pool:
        with pytest.raises(Forbidden):
            await pool.benches.reserve(SUSAN, ask())
        lease = await pool.benches.reserve(HUB, ask())
        with pytest.raises(Forbidden):
            await pool.benches.release(SUSAN, lease.id)
        assert pool.benches.leases(JOE) == []


async def test_lease_ends_one_minute_after_hub_loses_server(tmp_path: Path) -> None:
    clock = FakeClock()
    directory = StaticDirectory(known_servers=(HubServer("susan", "", ready=False),))
    pool = make_pool(
        tmp_path,
        configuration=TWO_EACH,
        directory=directory,
        clock=clock,
        runtime=ScriptedRuntime(devices(8)),
    )
    async with opened(pool):
        await pool.benches.reserve(HUB, ask())
        clock.pass_s(10 * GONE_S)
        await pool.housekeeping.ask_hub()
        assert len(pool.benches.leases(SUSAN)) == 1
        directory.known_servers = ()
        await pool.housekeeping.ask_hub()
        clock.pass_s(GONE_S - 1)
        await pool.housekeeping.ask_hub()
        assert len(pool.benches.leases(SUSAN)) == 1
        clock.pass_s(2)
        await pool.housekeeping.ask_hub()
        assert pool.benches.leases(SUSAN) == []


async def test_released_bench_gpus_start_queued_job(tmp_path: Path) -> None:
    runtime = ScriptedRuntime(devices(3))
    configuration = story(
        "{version: 1, build: {users: {susan: 3}, reserve: 0},"
        " projects: [{name: p, quota: 3, members: [joe]}]}"
    )
    async with opened(make_pool(tmp_path, configuration=configuration, runtime=runtime)) as pool:
        lease = await pool.benches.reserve(HUB, ask(gpus=3))
        job = await pool.jobs.submit(JOE, sleeper(gpus=3))
        await pool.benches.release(HUB, lease.id)
        await reached(pool, job.id, State.RUNNING)
        runtime.end((await runtime.until_launched(1))[0])
        await reached(pool, job.id, State.SUCCEEDED)


async def test_bench_for_new_user_preempts_jobs(tmp_path: Path) -> None:
    runtime = ScriptedRuntime(devices(2))
    directory = StaticDirectory((HubUser("joe"),), known_servers=())
    configuration = story(
        "{version: 1, build: {default: 1}, projects: [{name: p, quota: 0, members: [joe]}]}"
    )
    pool = make_pool(tmp_path, configuration=configuration, runtime=runtime, directory=directory)
    async with opened(pool):
        await pool.jobs.submit(JOE, sleeper())
        held = await pool.benches.reserve(HUB, ask(user="joe"))
        await runtime.until_launched(1)
        with pytest.raises(Unavailable):
            await pool.benches.reserve(HUB, ask(user="zoe"))

        async def refresh() -> None:
            directory.known_users = (HubUser("joe"), HubUser("zoe"))

        directory.refresh = refresh  # type: ignore[method-assign]
        with pytest.raises(Unavailable, match="Try again then"):
            await pool.benches.reserve(HUB, ask(user="zoe"))
        worker, notice = (await runtime.until_noticed(1))[0]
        assert notice.for_ == "benches"
        runtime.end(worker, 143)
        await until_job(pool, worker.job, lambda now: now.state is State.QUEUED)
        lease = await pool.benches.reserve(HUB, ask(user="zoe"))
        assert set(lease.gpus).isdisjoint(held.gpus)


def running(user: str, *gpus: str, lease: str = "l" * 26, started: float = 1.0) -> HubServer:
    return HubServer(user, "", held=HeldBench(lease, "spawn-1", gpus), started=started)


async def test_lost_lease_is_rebuilt_before_gpus_are_assigned(
    tmp_path: Path,
) -> None:
    directory = StaticDirectory(known_servers=(running("susan", "GPU-0", "GPU-1"),))
    pool = make_pool(
        tmp_path,
        configuration=TWO_EACH,
        directory=directory,
        runtime=ScriptedRuntime(devices(4)),
    )
    async with opened(pool):
        (lease,) = pool.benches.leases(SUSAN)
        assert (lease.id, lease.gpus) == ("l" * 26, ["GPU-0", "GPU-1"])
        (gpu,) = (await pool.benches.reserve(HUB, ask("joe"))).gpus
        assert gpu not in lease.gpus
        # A released lease stays released while the Hub still lists its server.
        await pool.benches.release(HUB, lease.id)
        await pool.housekeeping.ask_hub()
        assert pool.benches.leases(SUSAN) == []


async def test_lease_of_earlier_start_is_replaced_by_running_server(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    directory = StaticDirectory(known_servers=())
    pool = make_pool(
        tmp_path,
        configuration=TWO_EACH,
        clock=clock,
        directory=directory,
        runtime=ScriptedRuntime(devices(4)),
    )
    async with opened(pool):
        old = await pool.benches.reserve(HUB, ask(gpus=1))
        later = clock.now() + 60
        directory.known_servers = (running("susan", "GPU-3", started=later),)
        await pool.housekeeping.ask_hub()
        assert [it.gpus for it in pool.benches.leases(SUSAN)] == [["GPU-3"]]
        assert old.id != pool.benches.leases(SUSAN)[0].id
        # A server that started before the recorded lease does not replace it.
        directory.known_servers = (running("susan", "GPU-2", lease="m" * 26, started=later - 10),)
        await pool.housekeeping.ask_hub()
        assert [it.gpus for it in pool.benches.leases(SUSAN)] == [["GPU-3"]]


async def test_lost_bench_with_reassigned_gpu_is_reported(tmp_path: Path) -> None:
    directory = StaticDirectory(known_servers=())
    pool = make_pool(
        tmp_path,
        configuration=TWO_EACH,
        directory=directory,
        runtime=ScriptedRuntime(devices(5)),
    )
    async with opened(pool):
        other = await pool.benches.reserve(HUB, ask("joe", gpus=1))
        directory.known_servers = (running("susan", *other.gpus), HubServer("joe", ""))
        await pool.housekeeping.ask_hub()
        problems = " ".join(pool.views.status(ADMIN).health.problems)
        assert f"server of susan runs on {other.gpus[0]}" in problems
        directory.known_servers = (HubServer("joe", ""),)
        await pool.housekeeping.ask_hub()
        assert pool.views.status(ADMIN).health.problems == []
