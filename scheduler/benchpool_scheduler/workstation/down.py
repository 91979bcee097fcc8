"""``benchpool down``: stop a running ``benchpool up``, and report what continues to run."""

from __future__ import annotations

import asyncio
import os

from benchpool_scheduler.client import AsyncClient, Credentials
from benchpool_scheduler.contract import ENDED, Job, State
from benchpool_scheduler.contract.serving import ServiceState
from benchpool_scheduler.errors import BenchpoolError, Refused, Unavailable
from benchpool_scheduler.phrases import count
from benchpool_scheduler.workstation import hints, left_running, processes
from benchpool_scheduler.workstation import state as states
from benchpool_scheduler.workstation.hub_api import HubApi
from benchpool_scheduler.workstation.left_running import LeftRunning
from benchpool_scheduler.workstation.options import DownOptions
from benchpool_scheduler.workstation.startup_screen import (
    END_ALL,
    JsonScreen,
    StartupScreen,
    TextScreen,
)
from benchpool_scheduler.workstation.state import RunningInstance, StateFolder, find_running

END_PATIENCE_S = 40.0
JOBS_PATIENCE_S = 60.0
REASON = "benchpool down"
RESTS = {ServiceState.ASLEEP, ServiceState.STOPPED}
MOST_SERVICES = 1_000


def run(options: DownOptions) -> int:
    """Stop it and return the exit status: 0 done, 4 not running, 1 it does not stop."""
    screen: StartupScreen = JsonScreen() if options.json else TextScreen()
    folder = states.at(options.state)
    try:
        running = _running(folder)
        if running is None:
            return _end_what_is_left(folder, options, screen)
        asyncio.run(_clear(folder, running, options, screen))
        if not processes.end(running.pid, running.process, patience_s=END_PATIENCE_S, kill=False):
            raise Refused(
                f"benchpool (process {running.pid}) did not stop within {END_PATIENCE_S:.0f} s. "
                f"See {folder.hub_log}.",
                code="does-not-end",
            )
    except BenchpoolError as error:
        screen.error(error)
        return error.exit_status if isinstance(error, Unavailable) else 1
    screen.event("stopped", "benchpool has stopped.", state=str(folder.path))
    return 0


def _running(folder: StateFolder) -> RunningInstance | None:
    try:
        return find_running(folder)
    except Unavailable:
        return None


def _end_what_is_left(folder: StateFolder, options: DownOptions, screen: StartupScreen) -> int:
    """Stop jobs and servers that outlived ``benchpool up``, if requested.

    Errors: Unavailable when none run, or none of the requested kinds; it names the command.
    """
    left = left_running.find(folder)
    asked = (options.jobs != "keep" and left.jobs) or (options.servers == "stop" and left.servers)
    if not asked:
        raise Unavailable(
            f"No benchpool runs from {folder.path}. {_what_is_left(folder, left)}",
            code="not-running",
            numbers={"jobs": left.jobs, "servers": left.servers},
        )
    screen.note(f"{left.text} are still running; starting hub and scheduler to stop them cleanly")
    asyncio.run(_serve_and_clear(folder, options, screen))
    screen.event("stopped", "benchpool has stopped.", state=str(folder.path))
    return 0


def _what_is_left(folder: StateFolder, left: LeftRunning) -> str:
    if not (left.jobs or left.servers):
        return f"Start it with {hints.command('up', folder.path, os.environ)}."
    how = hints.command(END_ALL, folder.path, os.environ)
    return (
        f"{left.text} of it are still running: {how} stops them, and "
        f"{hints.command('up', folder.path, os.environ)} manages them again."
    )


async def _serve_and_clear(
    folder: StateFolder, options: DownOptions, screen: StartupScreen
) -> None:
    async with left_running.served(folder, screen) as running:
        await _clear(folder, running, options, screen)


async def _clear(
    folder: StateFolder, running: RunningInstance, options: DownOptions, screen: StartupScreen
) -> None:
    """Pause or cancel the jobs and stop services and notebook servers, as requested."""
    if options.jobs == "keep" and options.servers != "stop":
        return
    token = _token(folder)
    if options.jobs != "keep":
        service = running.scheduler_api.removesuffix("/api/v1")
        async with AsyncClient(Credentials(service, token, source="down")) as client:
            if options.jobs == "cancel":
                await _stop_services(client, screen)
            changed = await _end_jobs(client, options.jobs)
        done = "paused" if options.jobs == "pause" else "cancelled"
        screen.event(
            "jobs", f"{count(len(changed), 'job')} {done}.", action=options.jobs, jobs=changed
        )
    if options.servers == "stop":
        hub = HubApi(running.hub_api, token)
        try:
            servers = await hub.servers()
            await asyncio.gather(*(hub.stop_server(user, name) for user, name in servers))
        finally:
            await hub.close()
        screen.event(
            "servers", f"{count(len(servers), 'notebook server')} stopped.", servers=len(servers)
        )


async def _stop_services(client: AsyncClient, screen: StartupScreen) -> None:
    """Stop services, as they would start a new replica for each cancelled one."""
    found = await client.services(all=True, limit=MOST_SERVICES)
    names = [one.name for one in found if one.state not in RESTS]
    for name in names:
        await client.stop_service(name, REASON)
    if names:
        text = f"{count(len(names), 'service')} stopped; `benchpool wake-service NAME` starts one"
        screen.event("services", f"{text} again: {', '.join(names)}.", services=names)


async def _end_jobs(client: AsyncClient, action: str) -> list[str]:
    """Pause or cancel every job, and wait until none holds a GPU."""
    settled = {*ENDED, State.PAUSED} if action == "pause" else ENDED
    open_jobs = [job for job in await client.jobs(all_=True) if job.state not in settled]
    for job in open_jobs:
        try:
            await (client.pause if action == "pause" else client.cancel)(job.id, REASON)
        except Refused:
            continue  # it has ended meanwhile
    await _settle(client, {job.id for job in open_jobs}, settled)
    return [job.id for job in open_jobs]


async def _settle(
    client: AsyncClient, ids: set[str], settled: set[State] | frozenset[State]
) -> None:
    waiting = set(ids)
    try:
        async with asyncio.timeout(JOBS_PATIENCE_S):
            while waiting:
                jobs: list[Job] = [(await client.job(id_)).job for id_ in waiting]
                waiting = {job.id for job in jobs if job.state not in settled}
                if waiting:
                    await asyncio.sleep(0.2)
    except TimeoutError:
        return  # their grace period exceeds our timeout; their supervisors stop them


def _token(folder: StateFolder) -> str:
    try:
        return folder.admin_token.read_text().strip()
    except OSError as failed:
        rotate = hints.command("token rotate", folder.path, os.environ)
        raise Unavailable(
            f"The token in {folder.admin_token} cannot be read ({failed.strerror}), and nothing "
            f"was stopped. {rotate} writes a new one.",
            code="no-token",
        ) from failed
