"""``SandboxedMixin``: a notebook server of one machine starts in a sandbox, and leaves nothing.

What a server has started ends with it: its GPUs go to others, and a process that is left over would
keep them. Mix it in before ``QuotaMixin``, so that this comes before the GPUs are given back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, cast

from traitlets import Enum, Unicode
from traitlets.config import LoggingConfigurable

from benchpool_scheduler.worker import gpu_files
from benchpool_scheduler.worker.gpu_files import Numbers
from benchpool_scheduler.worker.supervisor import child, containment
from benchpool_scheduler.worker.supervisor.containment import Processes
from benchpool_spawner import left_processes
from benchpool_spawner.sandbox import Level, ServerSandbox, WantedSandbox, wanted

STATE_KEY = "sandbox"

END_S = 5.0
"""The end of a server waits for so long until nothing of it runs; its GPUs wait until it is so."""


def adopting(become: Callable[[], None]) -> Callable[[], None]:
    """Return what runs in a new process: it inherits what loses its parent, as long as it lives.

    So all that it starts is below it. It is no init: of what ends there an entry stays until then.
    """

    def adopt_and_become() -> None:
        containment.become_subreaper()
        become()

    return adopt_and_become


class SandboxedMixin(LoggingConfigurable):
    """What spawners of local processes have in common that keep servers apart."""

    sandbox = Enum(
        ("auto", "full", "off"),
        "auto",
        help="""
        How notebook servers are kept from each other. ``auto``: bounds on memory and processor
        (``mem_limit``, ``cpu_limit``) and on processes, no GPUs of others; for servers under
        accounts of their own also a ``/tmp`` of their own, hidden processes of other accounts, and
        no rights by setuid programs. ``full``: all of it for all servers. ``off``: nothing.
        """,
    ).tag(config=True)

    sandbox_folder = Unicode(
        help="""
        Where the servers' own temporary folders lie; nobody but the Hub's account may reach it.
        """,
    ).tag(config=True)

    own_accounts: ClassVar[bool] = False
    """Whether each server runs under its user's system account."""

    _sandbox: ServerSandbox | None = None
    _wanted: WantedSandbox | None = None
    _noted: Processes = ()
    _ending: asyncio.Task[None] | None = None

    # What the classes below provide.
    user: Any
    orm_spawner: Any
    pid: int
    start_tag: str | None
    cmd: list[str]
    mem_limit: int | None
    cpu_limit: float | None
    get_args: Callable[[], list[str]]
    get_env: Callable[[], dict[str, str]]
    leased_gpus: tuple[str, ...]
    denied_devices: tuple[Numbers, ...]

    async def start(self) -> Any:
        """Make the sandbox, and start the server in it."""
        await self._end_left()  # of a start whose Hub went down in its midst
        self._wanted = wanted(
            cast(Level, self.sandbox),
            own_account=self.own_accounts,
            memory=self.mem_limit,
            cpus=self.cpu_limit,
            denied=self._denied(),
        )
        if self._wanted is not None:
            made = await asyncio.to_thread(ServerSandbox.make, self._wanted, self.sandbox_folder)
            self._sandbox = made
            self.orm_spawner.state = self.get_state()
            self.user.db.commit()
        return await super().start()  # type: ignore[misc]

    def make_preexec_fn(self, name: str) -> Callable[[], None]:
        """Return what runs in the new process: it enters the sandbox, then becomes its account."""
        become: Callable[[], None] = super().make_preexec_fn(name)  # type: ignore[misc]
        if not self._ends_what_is_left():
            return become
        if self._is_loose():
            become = adopting(become)
        if self._sandbox is None or self._wanted is None:
            return become
        account = child.find_account(name) if self.own_accounts else None
        argv = [*self.cmd, *self.get_args()]
        inside = self._sandbox.confinement(self._wanted, account, argv, self.get_env())

        def enter() -> None:
            if inside.group is not None:
                inside.group.join()
            inside.enter(become)

        return enter

    async def poll(self) -> int | None:
        """Return None while the server runs, else its exit code; notes what lives below it."""
        status: int | None = await super().poll()  # type: ignore[misc]
        if status is None:
            await self._note()
        return status

    async def stop(self, now: bool = False) -> None:
        """End the server, after a last look at what it has started."""
        await self._note()
        await super().stop(now=now)  # type: ignore[misc]

    async def run_post_stop_hook(self) -> None:
        """End what the server has left running, before its GPUs are given back."""
        await self._end_left()
        hook: Any = super().run_post_stop_hook()  # type: ignore[misc]
        if hook is not None:
            await hook

    def _until_gone(self) -> Awaitable[None] | None:
        """Return what ends when nothing of the server runs: until then it may use its GPUs (R1)."""
        return self._ending

    async def _note(self) -> None:
        """Note what lives below the server, where no cgroup holds it together."""
        if self.pid and self._is_loose() and self._ends_what_is_left():
            self._noted = await asyncio.to_thread(left_processes.look, self.pid, self._noted)

    def _is_loose(self) -> bool:
        """Tell whether no cgroup holds together what the server starts."""
        return self._sandbox is None or self._sandbox.group is None

    def _ends_what_is_left(self) -> bool:
        """Tell whether anything ends with the server: if need be for the GPUs that others get."""
        return self.sandbox != "off" or bool(self.leased_gpus)

    async def _end_left(self) -> None:
        """End what is left, and wait a while for that; ``_ending`` is not over before it is."""
        tag, self.start_tag = self.start_tag, None
        noted, self._noted = self._noted, ()
        made, self._sandbox = self._sandbox, None
        if tag is None or (made is None and not self._ends_what_is_left()):
            self._ending = None
            return
        self._ending = asyncio.create_task(self._end(tag, noted, made))
        done, _ = await asyncio.wait([self._ending], timeout=END_S)
        if not done:
            self.log.warning("What the server of %s has left running takes long to end; its GPUs "
                             "stay its own until then", self.user.name)  # fmt: skip

    async def _end(self, tag: str, noted: Processes, made: ServerSandbox | None) -> None:
        try:
            await left_processes.end(tag, None if made is None else made.group, noted)
            if made is not None:
                await asyncio.to_thread(made.remove)
        except OSError as failed:
            self.log.warning("Ending what the server of %s has left running failed: %s",
                             self.user.name, failed)  # fmt: skip

    def _denied(self) -> tuple[Numbers, ...]:
        """Return the files of GPUs that are not its own; without a GPU, of all that there are."""
        return self.denied_devices if self.leased_gpus else tuple(sorted(gpu_files.look().all()))

    # ------------------------------------------------------------------ over a restart of the Hub

    def get_state(self) -> dict[str, Any]:
        """Return what a restarted Hub must know of the sandbox."""
        state: dict[str, Any] = super().get_state()  # type: ignore[misc]
        if self._sandbox is not None:
            state[STATE_KEY] = self._sandbox.as_state()
        return state

    def load_state(self, state: dict[str, Any]) -> None:
        """Take up the sandbox that an earlier Hub made."""
        super().load_state(state)  # type: ignore[misc]
        kept = state.get(STATE_KEY)
        self._sandbox = None if kept is None else ServerSandbox.from_state(kept)
