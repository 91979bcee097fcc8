"""Sandbox of a notebook server on one machine, with the same limits and isolation as for jobs.

``wanted`` decides. ``ServerSandbox`` is the result for one start, and is recognised after a restart
of the Hub. The server's process enters it between fork and exec, so it stays the Hub's own child.
Limits that the kernel does not allow are omitted. ``benchpool doctor`` reports them.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from benchpool_scheduler.worker.gpu_files import Numbers
from benchpool_scheduler.worker.process_limit import most_processes
from benchpool_scheduler.worker.supervisor import cgroups, private_folder
from benchpool_scheduler.worker.supervisor.cgroups import Bounds, Group
from benchpool_scheduler.worker.supervisor.child import Account, Confinement

Level = Literal["auto", "full", "off"]


@dataclass(frozen=True, slots=True)
class WantedSandbox:
    """Intended sandbox of a server, as far as the kernel allows.

    Attributes:
        memory: Memory limit in bytes, or None. ``cpus``: limit of processor cores, or None.
            ``processes``: limit of processes and threads.
        denied: Device files that it must not open.
        private: Whether it has its own ``/tmp`` and sees no processes of other accounts.
        privileges: Whether setuid programs, such as ``sudo``, may give it more rights than its
            account has.
    """

    memory: int | None
    cpus: float | None
    processes: int
    denied: tuple[Numbers, ...]
    private: bool
    privileges: bool


def wanted(
    level: Level,
    *,
    own_account: bool,
    memory: int | None = None,
    cpus: float | None = None,
    denied: Sequence[Numbers] = (),
) -> WantedSandbox | None:
    """Return the intended sandbox, or None for none.

    Under one shared account private folders isolate nothing, and a user with ``sudo`` rights in a
    terminal of this machine keeps them in JupyterLab. The level ``full`` applies both anyway.

    >>> found = wanted("auto", own_account=False, denied=[(195, 0)])
    >>> (found.denied, found.private, found.privileges)
    (((195, 0),), False, True)
    >>> wanted("off", own_account=True)
    """
    if level == "off":
        return None
    apart = own_account or level == "full"
    return WantedSandbox(
        memory or None, cpus or None, most_processes(), tuple(denied), apart, not apart
    )


@dataclass(frozen=True, slots=True)
class ServerSandbox:
    """Sandbox made for one start of a server.

    Attributes:
        groups: Folders of its cgroups. ``folder``: parent folder of its own ``/tmp``, or None.
        holds: Resources that its cgroups limit: ``memory``, ``cpu``, ``pids``, ``devices``.
    """

    groups: tuple[str, ...] = ()
    folder: str | None = None
    holds: frozenset[str] = frozenset()

    @classmethod
    def make(cls, settings: WantedSandbox, below: str) -> ServerSandbox:
        """Create cgroups and folder. Errors: OSError if the folder cannot be created."""
        name = f"benchpool-server-{uuid.uuid4().hex[:12]}-{os.getpid()}"
        # Only a kernel over the limit is killed. The server survives and reports it.
        bounds = Bounds(
            settings.memory, settings.cpus, settings.processes, settings.denied, together=False
        )
        group = cgroups.make(name, bounds)
        made = cls(group.folders, None, group.holds) if group else cls()
        if not settings.private:
            return made
        folder = os.path.join(below, name)
        try:
            os.makedirs(folder, mode=0o700)
            private = private_folder.make(folder)
        except OSError:
            made.remove()
            raise
        if private is None:
            os.rmdir(folder)
            return made
        return cls(made.groups, folder, made.holds)

    def confinement(
        self,
        settings: WantedSandbox,
        account: Account | None,
        argv: Sequence[str],
        env: Mapping[str, str],
    ) -> Confinement:
        """Return the confinement for the server's process. It keeps the account unchanged."""
        private = None if self.folder is None else os.path.join(self.folder, private_folder.NAME)
        kept = private_folder.named(argv, env)
        return Confinement(self.group, account, private, kept, settings.privileges)

    @property
    def group(self) -> Group | None:
        """Its cgroups, or None without any."""
        return Group(self.groups, self.holds) if self.groups else None

    def remove(self) -> None:
        """Remove cgroups and folder, after all processes of the server have ended."""
        if self.group is not None:
            self.group.remove()
        if self.folder is not None:
            private_folder.remove(self.folder)
            with contextlib.suppress(OSError):
                os.rmdir(self.folder)

    def as_state(self) -> dict[str, Any]:
        """Return the state that a restarted Hub needs.

        >>> made = ServerSandbox(("/sys/fs/cgroup/benchpool-server-1",))
        >>> ServerSandbox.from_state(made.as_state()) == made
        True
        """
        return {"groups": list(self.groups), "folder": self.folder, "holds": sorted(self.holds)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> ServerSandbox:
        """Return the sandbox that an earlier Hub created."""
        return cls(
            tuple(state.get("groups", ())), state.get("folder"), frozenset(state.get("holds", ()))
        )
