"""Jobs and notebook servers that outlive ``benchpool up``: counted, and stopped on request.

Scheduler and Hub stop them, as these know their processes. So both are started again, on the
machine's own addresses, and stopped afterwards.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec
import psutil

from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.phrases import count
from benchpool_scheduler.worker import records
from benchpool_scheduler.worker.process_identity import identity
from benchpool_scheduler.workstation import admin_token, files, hub_facts, ports
from benchpool_scheduler.workstation.hub_api import START_HEADER, AwaitedAddress, HubApi
from benchpool_scheduler.workstation.hub_keeper import HubKeeper
from benchpool_scheduler.workstation.hub_process import HubProcess
from benchpool_scheduler.workstation.options import LOOPBACK
from benchpool_scheduler.workstation.startup_screen import StartupScreen
from benchpool_scheduler.workstation.state import RunningInstance, StateFolder, alone


class _Facts(msgspec.Struct, frozen=True):
    """Part of the facts file. A file of release 0.1 has no headers."""

    headers: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class LeftRunning:
    """Number of running jobs and notebook servers of a state folder."""

    jobs: int
    servers: int

    @property
    def text(self) -> str:
        """Return the numbers in words.

        >>> LeftRunning(1, 2).text
        '1 job and 2 notebook servers'
        """
        return f"{count(self.jobs, 'job')} and {count(self.servers, 'notebook server')}"


def find(folder: StateFolder) -> LeftRunning:
    """Count jobs by their supervisors, and notebook servers by their Hub's address."""
    jobs = {
        file.parents[3].name
        for file in folder.path.glob(f"jobs/*/attempts/*/worker-*/{records.PROCESS}")
        if _lives(records.read(str(file.parent), records.PROCESS))
    }
    known = ports.kept(folder)
    return LeftRunning(len(jobs), 0 if known is None else _servers(known))


def _lives(process: Mapping[str, object] | None) -> bool:
    if process is None or not isinstance(pid := process.get("pid"), int):
        return False
    return identity(pid) == f"{process.get('boot_id')}:{pid}:{process.get('start_ticks')}"


def _servers(known: ports.Ports) -> int:
    """Count the server processes of this Hub, without their child processes."""
    hub, found = f"http://{LOOPBACK}:{known.hub}/hub/api", 0
    for process in psutil.process_iter():
        try:
            if "jupyterhub.singleuser" in process.cmdline():
                found += process.environ().get("JUPYTERHUB_API_URL") == hub
        except psutil.Error:
            continue  # ended, or another account's
    return found


@asynccontextmanager
async def served(folder: StateFolder, screen: StartupScreen) -> AsyncIterator[RunningInstance]:
    """Start Hub and scheduler with their last settings, until the block ends.

    Errors: Unavailable when they do not start, or were never started here.
    """
    known, facts = ports.kept(folder), files.read_json(folder.facts, _Facts)
    if known is None or facts is None:
        raise Unavailable(f"benchpool was never started from {folder.path}.", code="not-running")
    hub_api = f"http://{LOOPBACK}:{known.hub}/hub/api"
    scheduler = f"http://{LOOPBACK}:{known.scheduler}/services/benchpool/api/v1"
    start = facts.headers.get(START_HEADER, "")
    answers = (
        AwaitedAddress(f"{hub_api}/", start=start),
        AwaitedAddress(f"{scheduler}/health", start=start),
    )
    with alone(folder) as lock:
        hub = HubProcess(folder, lock)
        keeper = HubKeeper(hub, folder.path, answers, screen, asyncio.Event())
        try:
            await keeper.start()
            api = HubApi(hub_api, hub_facts.secrets(folder).hub_token)
            try:
                await admin_token.current(api, folder.admin_token, datetime.now(UTC))
            finally:
                await api.close()
            yield RunningInstance(
                pid=os.getpid(),
                process=identity(os.getpid()) or "",
                url=hub_api,
                hub_api=hub_api,
                scheduler_api=scheduler,
                token_file=folder.admin_token.name,
                auth="",
            )
        finally:
            await hub.stop()
