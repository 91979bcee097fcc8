"""A pool with one bench, with a scripted GPU, notebook server and Hub."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchpool_scheduler.configuration import load
from benchpool_scheduler.contract import Lease, LeaseRequest
from benchpool_scheduler.contract.idle_benches import BenchActivity, BenchIdleness
from benchpool_scheduler.core.benches.giving_back import Giving
from benchpool_scheduler.core.benches.idle import IdleStep, IdleWatch, Sighting
from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.hub import HubServer, HubUser, StaticDirectory
from benchpool_scheduler.runtime import Device
from benchpool_scheduler.service import Pool
from benchpool_scheduler.telemetry import GpuSample, HeldSample, Holder
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import HUB, SUSAN, make_pool, opened
from benchpool_support.scripted import ScriptedRuntime, devices
from benchpool_support.serving import Served

CONFIGURATION = """
version: 1
build: {users: {susan: 2}}
idle_benches: {act: %s%s}
"""


def configuration(act: bool = True, more: str = "") -> str:
    """Return a configuration whose idle rule is on or off, with ``more`` keys of the rule."""
    return CONFIGURATION % ("true" if act else "false", more and f", {more}")


@dataclass
class HubThatStops(StaticDirectory):
    """Hub that records the servers that it was asked to stop, or refuses.

    Attributes:
        meanwhile: Runs between a request and its answer.
    """

    stopped: list[tuple[str, str]] = field(default_factory=list)
    refuses: bool = False
    meanwhile: Callable[[], Awaitable[None]] | None = None

    async def stop_server(self, user: str, name: str) -> None:
        """Record the server."""
        if self.meanwhile is not None:
            await self.meanwhile()
        if self.refuses:
            raise Unavailable("the Hub refuses to stop it (HTTP 403).")
        self.stopped.append((user, name))


class SeeingRuntime(ScriptedRuntime):
    """Machine whose GPUs have the processes that a test sets, or None for unknown."""

    def __init__(self, gpus: Sequence[Device]) -> None:
        super().__init__(gpus)
        self.on_gpus: tuple[int, ...] | None = ()

    async def holders(self, gpus: Sequence[str]) -> tuple[int, ...] | None:
        """Return the processes that the test set."""
        return self.on_gpus


@dataclass
class IdleSite:
    """The pool and its scripted inputs.

    Attributes:
        gives_up: The notebook server can take GPUs from its kernels.
    """

    pool: Pool
    clock: FakeClock
    hub: HubThatStops
    runtime: SeeingRuntime
    lease: Lease | None = None
    gives_up: bool = False
    executions: int = 0

    @property
    def id(self) -> str:
        """The ID of the bench's lease."""
        assert self.lease is not None
        return self.lease.id

    async def start(self) -> None:
        """Start a bench of one GPU for user susan."""
        asked = LeaseRequest(user="susan", server="", spawn="s", gpus=1)
        self.lease = await self.pool.benches.reserve(HUB, asked)
        self.hub.known_servers = (HubServer("susan", "", profile="large"),)

    def report(self, working: bool | None = False, **more: bool) -> BenchIdleness:
        """Report as the notebook server does, with None for unknown."""
        return self.pool.idle.report(
            SUSAN,
            self.id,
            BenchActivity(
                kernels=1,
                busy_kernels=int(bool(working)),
                executions=self.executions,
                terminal_programs=None if working is None else 0,
                gives_up=self.gives_up,
                **more,
            ),
        )

    def measure(self, activity: float | None, span_s: float) -> None:
        """Add a sample of the bench's GPU, unless ``activity`` is None."""
        if activity is not None and self.lease is not None:
            (gpu,) = self.lease.gpus
            holder = Holder(bench=self.id, server="", user="susan")
            sample = GpuSample(self.clock.now(), span_s, gpu, activity=activity)
            self.pool.metering.seen.publish([HeldSample(sample, holder)])

    async def pass_by(self, seen: Sighting, span_s: float) -> None:
        """Let the time of one observation pass with its reports, and let the service observe."""
        self.report_sighting(seen, span_s)
        await self.pool.idle.look()

    def report_sighting(self, seen: Sighting, span_s: float) -> None:
        """Report the observation as the sampler and the notebook server do."""
        self.executions += seen.executed
        self.measure(seen.activity, span_s)
        self.report(seen.working)

    async def rest(self, minutes: float, every_s: float = 30.0) -> None:
        """Let this number of minutes pass without any use."""
        for _ in range(round(minutes * 60 / every_s)):
            self.clock.pass_s(every_s)
            await self.pass_by(Sighting(0.0, every_s, 0.0, working=False), every_s)

    def now(self) -> BenchIdleness:
        """Return the state of the bench."""
        (one,) = self.pool.idle.list(SUSAN)
        return one

    def trail(self) -> Path:
        """Return the path of the audit trail."""
        return self.pool.observed.settings.state / "scheduler" / "audit"


def made(
    folder: Path, text: str | None = None, *, clock: FakeClock | None = None, **more: Any
) -> IdleSite:
    """Return a site that is not open yet."""
    clock, hub = clock or FakeClock(), HubThatStops((HubUser("susan", groups={"staff": None}),))
    runtime = SeeingRuntime(devices(3))
    pool = make_pool(
        folder,
        configuration=load(text or configuration()),
        runtime=runtime,
        clock=clock,
        **{"directory": hub, **more},
    )
    return IdleSite(pool, clock, hub, runtime)


@asynccontextmanager
async def running(folder: Path, text: str | None = None, **more: Any) -> AsyncIterator[IdleSite]:
    """Open a site and start its bench; the arguments are those of ``made``."""
    site = made(folder, text, **more)
    async with opened(site.pool):
        await site.start()
        yield site


def stand(pool: Served, lease: str, step: IdleStep, giving: Giving = Giving.NONE) -> None:
    """Set the idle step of a bench, as an hour of observations would have left it."""

    async def lay() -> None:
        watcher = pool.pool.idle.watcher
        watcher.meet()
        now = watcher.now()
        watcher.benches[lease].watch = IdleWatch(step, at=now, since=now - 4000)
        watcher.give(watcher.benches[lease], giving)

    pool.do(lay())
