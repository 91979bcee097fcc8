"""``SandboxedMixin``: runs a notebook server in a sandbox, and ends all its processes.

All processes of a server end with it, because its GPUs are given to other servers or jobs. Place
the mixin before ``QuotaMixin``, so that this happens before the GPUs are released.
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
"""Time that a server's stop waits for its processes to end, in seconds. Its GPUs are released only
after they have ended.
"""


def adopting(become: Callable[[], None]) -> Callable[[], None]:
    """Return the preparation of a new process that adopts orphaned descendants (a subreaper).

    All descendants then stay below it. It does not reap them: ended ones stay as zombies until it
    ends.
    """

    def adopt_and_become() -> None:
        containment.become_subreaper()
        become()

    return adopt_and_become


class SandboxedMixin(LoggingConfigurable):
    """Base for spawners of local processes that isolate servers from each other."""

    sandbox = Enum(
        ("auto", "full", "off"),
        "auto",
        help="""
        Isolation of notebook servers. ``auto``: limits on memory and processor (``mem_limit``,
        ``cpu_limit``) and on processes, no access to other GPUs; for servers under their own
        accounts also their own ``/tmp``, hidden processes of other accounts, and no rights from
        setuid programs. ``full``: all of it for all servers. ``off``: no isolation.
        """,
    ).tag(config=True)

    sandbox_folder = Unicode(
        help="""
        Folder of the servers' own temporary folders; only the Hub's account may have access.
        """,
    ).tag(config=True)

    own_accounts: ClassVar[bool] = False
    """Whether each server runs under its user's system account."""

    _sandbox: ServerSandbox | None = None
    _wanted: WantedSandbox | None = None
    _noted: Processes = ()
    _ending: asyncio.Task[None] | None = None

    # Attributes of the classes below.
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
        """Create the sandbox and start the server in it."""
        await self._end_left()  # of a start that a stopping Hub interrupted
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
        """Return the preparation of the new process: enter the sandbox, then switch the account."""
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
        """Return None while the server runs, else its exit code. Also record its descendants."""
        status: int | None = await super().poll()  # type: ignore[misc]
        if status is None:
            await self._note()
        return status

    async def stop(self, now: bool = False) -> None:
        """Stop the server, after a last record of its descendants."""
        await self._note()
        await super().stop(now=now)  # type: ignore[misc]

    async def run_post_stop_hook(self) -> None:
        """End the server's remaining processes before its GPUs are released."""
        await self._end_left()
        hook: Any = super().run_post_stop_hook()  # type: ignore[misc]
        if hook is not None:
            await hook

    def _until_gone(self) -> Awaitable[None] | None:
        """Return an awaitable that ends with the last process, and so the use of GPUs (R1)."""
        return self._ending

    async def _note(self) -> None:
        """Record the server's descendants, if no cgroup contains them."""
        if self.pid and self._is_loose() and self._ends_what_is_left():
            self._noted = await asyncio.to_thread(left_processes.look, self.pid, self._noted)

    def _is_loose(self) -> bool:
        """Return whether no cgroup contains the server's processes."""
        return self._sandbox is None or self._sandbox.group is None

    def _ends_what_is_left(self) -> bool:
        """Return whether remaining processes are ended: with a sandbox, or if it has GPUs."""
        return self.sandbox != "off" or bool(self.leased_gpus)

    async def _end_left(self) -> None:
        """End the remaining processes. Wait up to ``END_S``, and leave the rest to ``_ending``."""
        tag, self.start_tag = self.start_tag, None
        noted, self._noted = self._noted, ()
        made, self._sandbox = self._sandbox, None
        if tag is None or (made is None and not self._ends_what_is_left()):
            self._ending = None
            return
        self._ending = asyncio.create_task(self._end(tag, noted, made))
        done, _ = await asyncio.wait([self._ending], timeout=END_S)
        if not done:
            self.log.warning("Remaining processes of the server of %s are slow to end; it keeps "
                             "its GPUs until then", self.user.name)  # fmt: skip

    async def _end(self, tag: str, noted: Processes, made: ServerSandbox | None) -> None:
        try:
            await left_processes.end(tag, None if made is None else made.group, noted)
            if made is not None:
                await asyncio.to_thread(made.remove)
        except OSError as failed:
            self.log.warning("Ending the remaining processes of the server of %s failed: %s",
                             self.user.name, failed)  # fmt: skip

    def _denied(self) -> tuple[Numbers, ...]:
        """Return the device files of GPUs that are not its own. Without a GPU these are all."""
        return self.denied_devices if self.leased_gpus else tuple(sorted(gpu_files.look().all()))

    # ------------------------------------------------------------------ across restarts of the Hub

    def get_state(self) -> dict[str, Any]:
        """Return the state of the sandbox that a restarted Hub needs."""
        state: dict[str, Any] = super().get_state()  # type: ignore[misc]
        if self._sandbox is not None:
            state[STATE_KEY] = self._sandbox.as_state()
        return state

    def load_state(self, state: dict[str, Any]) -> None:
        """Load the sandbox that an earlier Hub created."""
        super().load_state(state)  # type: ignore[misc]
        kept = state.get(STATE_KEY)
        self._sandbox = None if kept is None else ServerSandbox.from_state(kept)
