"""The sandbox of a notebook server on one machine: the same bounds and walls that jobs have.

``wanted`` decides; ``ServerSandbox`` is what was made for one start, and is known again after a
restart of the Hub. The server's process enters it between fork and exec, so it stays the Hub's own
child.
What the kernel does not let us set is left out; ``benchpool doctor`` says what that is.
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
    """What a server's sandbox should hold, where the kernel lets us.

    Attributes:
        memory: Bytes; None for no bound. ``cpus``: processor cores. ``processes``: and threads.
        denied: Device files that it must not open.
        private: It has a ``/tmp`` of its own and sees no processes of other accounts.
        privileges: Setuid programs, such as ``sudo``, may give it more rights than its account has.
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
    """Return what to set; None for nothing.

    Under one shared account private folders keep nobody out, and whoever may type ``sudo`` in a
    terminal of this machine may go on doing so in JupyterLab's: unless ``full`` is asked for.

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
    """What was made for one start of a server.

    Attributes:
        groups: Folders of its cgroups. ``folder``: where its own ``/tmp`` lies, if it has one.
        holds: What its cgroups bind: ``memory``, ``cpu``, ``pids``, ``devices``.
    """

    groups: tuple[str, ...] = ()
    folder: str | None = None
    holds: frozenset[str] = frozenset()

    @classmethod
    def make(cls, wish: WantedSandbox, below: str) -> ServerSandbox:
        """Make cgroups and folder. Errors: OSError, when the folder cannot be made."""
        name = f"benchpool-server-{uuid.uuid4().hex[:12]}-{os.getpid()}"
        # A kernel that takes too much is ended; the server lives on and says so.
        bounds = Bounds(wish.memory, wish.cpus, wish.processes, wish.denied, together=False)
        group = cgroups.make(name, bounds)
        made = cls(group.folders, None, group.holds) if group else cls()
        if not wish.private:
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
        wish: WantedSandbox,
        account: Account | None,
        argv: Sequence[str],
        env: Mapping[str, str],
    ) -> Confinement:
        """Return what the server's process enters; it does not become the account by that."""
        private = None if self.folder is None else os.path.join(self.folder, private_folder.NAME)
        kept = private_folder.named(argv, env)
        return Confinement(self.group, account, private, kept, wish.privileges)

    @property
    def group(self) -> Group | None:
        """Its cgroups; None where none could be made."""
        return Group(self.groups, self.holds) if self.groups else None

    def remove(self) -> None:
        """Remove what was made, of a server of which nothing runs any more."""
        if self.group is not None:
            self.group.remove()
        if self.folder is not None:
            private_folder.remove(self.folder)
            with contextlib.suppress(OSError):
                os.rmdir(self.folder)

    def as_state(self) -> dict[str, Any]:
        """Return what a restarted Hub must know of it.

        >>> made = ServerSandbox(("/sys/fs/cgroup/benchpool-server-1",))
        >>> ServerSandbox.from_state(made.as_state()) == made
        True
        """
        return {"groups": list(self.groups), "folder": self.folder, "holds": sorted(self.holds)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> ServerSandbox:
        """Return what an earlier Hub made."""
        return cls(
            tuple(state.get("groups", ())), state.get("folder"), frozenset(state.get("holds", ()))
        )
