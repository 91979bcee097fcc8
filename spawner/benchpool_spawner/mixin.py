"""``QuotaMixin``: a fixed quota of GPUs (R2) for any JupyterHub spawner.

    options -> pre-spawn: reserve a lease, or wait in the queue -> start with these GPUs
            -> post-stop: release the lease

The scheduler decides in one atomic step whether the user may have the GPUs. The mixin requests
them, shows a refusal, passes the GPUs to the server, and releases the lease however a start or a
server ends. A server without GPUs needs no scheduler. Place the mixin before the spawner class.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar, get_args

from traitlets import Enum, Float, Unicode, default
from traitlets.config import LoggingConfigurable

from benchpool_scheduler.client import Credentials
from benchpool_scheduler.contract import Lease, LeaseRequest, LinePlace
from benchpool_scheduler.contract.group_property import group_quota
from benchpool_scheduler.errors import BenchpoolError, TooMany, Unavailable
from benchpool_spawner import form, home, line, options, refusal, server_names
from benchpool_spawner.lease_client import LeaseClient
from benchpool_spawner.steps import Steps

RELEASE_WAIT_S = 3.0
"""Time that a server's stop waits for the release of its lease, in seconds. Then the release
continues in the background.
"""

STATE_KEY = "benchpool"


class QuotaMixin(LoggingConfigurable):
    """Base of all GPU spawners of benchpool."""

    scheduler_url = Unicode(
        help="""
        Address of the benchpool service for the Hub, including ``/services/benchpool``.
        """,
    ).tag(config=True)

    scheduler_token = Unicode(
        help="""
        Token that identifies the Hub to the service. It never reaches a notebook server.
        """,
    ).tag(config=True)

    public_scheduler_url = Unicode(
        help="""
        Address of the benchpool service for notebook servers, set as ``BENCHPOOL_URL``.
        Default: the same as ``scheduler_url``.
        """,
    ).tag(config=True)

    scheduler_patience = Float(
        20.0,
        help="""
        Timeout of a start while the scheduler does not answer, in seconds; 60 on a cluster.
        """,
    ).tag(config=True)

    when_busy = Enum(
        get_args(options.WhenBusy),
        "wait",
        help="""
        Action of a start whose GPUs are not available at once, because they are lent or quotas
        exceed the GPUs: ``wait`` in the queue, ``start-without-gpu``, or ``refuse``. A user can
        override it with the option of the same name.
        """,
    ).tag(config=True)

    longest_wait = Float(
        1800.0,
        help="""
        Longest wait of a start in the queue for its GPUs, in seconds. ``start_timeout`` begins
        afterwards.
        """,
    ).tag(config=True)

    _desks: ClassVar[dict[tuple[str, str], LeaseClient]] = {}

    # ``_spawn_id`` names one start. ``_lease_id`` is its lease, or its queue position. Both live
    # from pre-spawn to post-stop and, through the state, across a restart of the Hub.
    _spawn_id: str | None = None
    _lease_id: str | None = None
    _lease_gpus: tuple[str, ...] = ()
    denied_devices: tuple[tuple[int, int], ...] = ()
    """Device files of other GPUs, as returned with the lease. Only on one machine."""
    steps: Steps | None = None
    """Steps of the current start, or of the last one."""

    # Attributes of the spawner class below.
    user: Any
    orm_spawner: Any
    api_token: str
    server: Any
    name: str
    user_options: dict[str, Any]

    @property
    def leased_gpus(self) -> tuple[str, ...]:
        """GPUs of this start."""
        return self._lease_gpus

    # ------------------------------------------------------------------ asking

    @property
    def lease_client(self) -> LeaseClient:
        """The Hub's connection to the scheduler, one for all servers."""
        key = (self.scheduler_url, self.scheduler_token)
        if key not in self._desks:
            credentials = Credentials(*key, source="hub")
            self._desks[key] = LeaseClient(credentials, self.scheduler_patience)
        return self._desks[key]

    @default("options_form")
    def _default_options_form(self) -> Any:
        return self._render_form

    @default("options_from_form")
    def _default_options_from_form(self) -> Any:
        return self._read_form

    @default("apply_user_options")
    def _default_apply_user_options(self) -> Any:
        # The pre-spawn step reads them. Without a callable the Hub warns at each start.
        return lambda spawner, user_options: None

    async def _render_form(self, spawner: Any) -> str:
        advice = await self.lease_client.advice(self.user.name)
        return form.render(
            form.model(
                self.user.name,
                advice,
                self._remembered(),
                self._servers(),
                when_busy=self.when_busy,
            )
        )

    async def today(self) -> home.Home:
        """Return the content of the Hub's home page for its user. The template calls this."""
        return home.model(await self.lease_client.today(self.user.name))

    def _read_form(self, form_data: Mapping[str, object]) -> dict[str, object]:
        return self._parsed(options.parse_form, form_data).as_user_options()

    async def run_pre_spawn_hook(self) -> None:
        """Reserve the GPUs, then run the administrator's own hook."""
        self._begin()
        asked = self._parsed(options.parse, self.user_options)
        # The admin page shows this key as the server's profile.
        self.user_options = {**(self.user_options or {}), "profile": form.profile(asked)}
        await self._reserve_for(asked.gpus, asked.gpu_models, asked.when_busy)
        hook: Any = super().run_pre_spawn_hook()  # type: ignore[misc]
        if hook is not None:
            await hook

    async def _get_oauth_client_allowed_scopes(self) -> Any:
        """Refuse a name that collides with another user's server, then return the Hub's scopes.

        The Hub calls this just before it stores the OAuth client of the server. A refusal after
        that would delete the other server's logins.
        """
        other = server_names.taken_by(self.user.db, self.user.name, self.name)
        if other is not None:
            self._drop_start()
            self.log.warning(
                "refused: server %r of %s has the same name in the Hub as server %r of %s",
                self.name, self.user.name, other[1], other[0],
            )  # fmt: skip
            raise self._refused(refusal.name_taken(self.user.name, self.name))
        return await super()._get_oauth_client_allowed_scopes()  # type: ignore[misc]

    def _drop_start(self) -> None:
        """Delete what the Hub has stored for a start that is refused."""
        from jupyterhub.orm import APIToken

        token = APIToken.find(self.user.db, self.api_token)
        if token is not None:
            self.user.db.delete(token)
        self.server = None
        self.user.db.commit()

    def _begin(self) -> Steps:
        """Reset the state of the previous start."""
        self.steps = Steps()
        self._spawn_id, self._lease_id, self._lease_gpus = None, None, ()
        return self.steps

    async def _reserve_for(
        self,
        gpus: int,
        models: tuple[str, ...],
        when_busy: options.WhenBusy | None = None,
        **more: Any,
    ) -> None:
        """Reserve GPUs, if any are requested. ``more``: other fields of the request.

        Raises:
            StartRefused: The scheduler refuses, or does not answer.
        """
        steps = self.steps = self.steps or Steps()
        if not gpus:
            steps.add("No GPU requested", 20)
            return
        steps.add(f"Asking the scheduler for {form.gpus(gpus)}", 5)
        self._spawn_id = uuid.uuid4().hex
        request = LeaseRequest(
            user=self.user.name,
            server=self.name,
            spawn=self._spawn_id,
            gpus=gpus,
            groups=build_quotas(groups_of(self.user)),
            gpu_models=list(models),
            **more,
        )
        busy = when_busy or self.when_busy
        try:
            lease = await self._lease(request, steps, busy)
        except BenchpoolError as error:
            if busy == "start-without-gpu" and is_shortage(error):
                self._spawn_id = None
                steps.add(f"{error.message} Starting without a GPU", 20)
                return
            steps.add(error.message, 5)
            raise self._refused(refusal.from_error(error)) from error
        self._keep(lease)
        steps.add(f"Reserved {form.gpus(len(lease.gpus))}: {', '.join(lease.gpus)}", 30)

    async def _lease(self, request: LeaseRequest, steps: Steps, busy: options.WhenBusy) -> Lease:
        def on_wait() -> None:
            steps.add("Waiting for the scheduler to answer", 5)

        def on_place(place: LinePlace) -> None:
            self._lease_id = place.id  # released like a lease if the start is cancelled
            text = line.sentence(place, datetime.now(UTC))
            steps.add(text, 10, queue=line.queue(place))

        if busy == "wait":
            return await self.lease_client.wait_in_line(
                request, on_wait, on_place, self.longest_wait
            )
        return await self.lease_client.reserve(request, on_wait)

    def _keep(self, lease: Lease) -> None:
        """Store the lease immediately, so that it survives a restart of the Hub."""
        self._lease_id, self._lease_gpus = lease.id, tuple(lease.gpus)
        self.denied_devices = tuple(lease.denied_devices)
        if self.orm_spawner is not None:
            self.orm_spawner.state = self.get_state()
            self.user.db.commit()

    def options_from_query(self, query_data: Mapping[str, object]) -> dict[str, object]:
        """Read options from the address. An invalid one shows the form with the reason."""
        return self._parsed(options.parse, query_data).as_user_options()

    def _parsed(self, parse: Any, raw: Mapping[str, object]) -> options.ServerOptions:
        try:
            parsed: options.ServerOptions = parse(raw or {})
        except BenchpoolError as error:
            raise self._refused(refusal.from_error(error)) from error
        return parsed

    def _refused(self, refused: refusal.StartRefused) -> refusal.StartRefused:
        refusal.neutralise_failure_count(self)
        return refused

    # ------------------------------------------------------------------ starting

    def start(self) -> Awaitable[Any]:
        """Start the server with its GPUs."""
        return self._start_and_report()

    async def _start_and_report(self) -> Any:
        where = await super().start()  # type: ignore[misc]
        if self.steps is not None:
            self.steps.add("Started the notebook server, waiting for its first answer", 60)
        return where

    def get_env(self) -> dict[str, str]:
        """Return the server's environment: its GPUs by UUID, and the scheduler's address."""
        env: dict[str, str] = super().get_env()  # type: ignore[misc]
        env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        # An empty list hides all GPUs. An unset variable would show all of them.
        env["CUDA_VISIBLE_DEVICES"] = ",".join(self._lease_gpus)
        env["BENCHPOOL_URL"] = self.public_scheduler_url or self.scheduler_url
        return env

    async def progress(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the steps of this start as they happen, for the progress page."""
        steps = self.steps = self.steps or Steps()
        async for step in steps.follow():
            yield step.event()

    # ------------------------------------------------------------------ ending

    async def run_post_stop_hook(self) -> None:
        """Release the lease, after a stop, a crash, and a failed or cancelled start."""
        spawn, lease = self._spawn_id, self._lease_id
        self._spawn_id, self._lease_id, self._lease_gpus = None, None, ()
        if spawn is not None:
            await self.lease_client.release(
                self.user.name, spawn, lease, wait_s=RELEASE_WAIT_S, after=self._until_gone()
            )
        hook: Any = super().run_post_stop_hook()  # type: ignore[misc]
        if hook is not None:
            await hook

    def _until_gone(self) -> Awaitable[None] | None:
        """Return an awaitable that ends with the server's use of its GPUs, or None."""
        return None

    # ------------------------------------------------------------------ across restarts of the Hub

    def get_state(self) -> dict[str, Any]:
        """Return the state of this server that a restarted Hub needs."""
        state: dict[str, Any] = super().get_state()  # type: ignore[misc]
        if self._spawn_id is not None:
            state[STATE_KEY] = {
                "spawn": self._spawn_id,
                "lease": self._lease_id,
                "gpus": list(self._lease_gpus),
            }
        return state

    def load_state(self, state: dict[str, Any]) -> None:
        """Load the state of this server that an earlier Hub stored."""
        super().load_state(state)  # type: ignore[misc]
        kept = state.get(STATE_KEY) or {}
        self._spawn_id, self._lease_id = kept.get("spawn"), kept.get("lease")
        self._lease_gpus = tuple(kept.get("gpus", ()))

    # ------------------------------------------------------------------ for the form

    def _stored_options(self) -> Mapping[str, object]:
        """Return the options of the last start, as stored by the Hub. Empty without its row."""
        kept = getattr(self.orm_spawner, "user_options", None)
        return kept if isinstance(kept, Mapping) else {}

    def _remembered(self) -> options.ServerOptions:
        try:
            return options.parse(self._stored_options())
        except BenchpoolError:
            return options.ServerOptions()

    def _servers(self) -> dict[str, form.Server]:
        rows = getattr(getattr(self.user, "orm_user", None), "orm_spawners", None)
        if not isinstance(rows, Mapping):
            return {}
        return {
            server.name: form.Server(server.name, server.last_activity) for server in rows.values()
        }


def groups_of(user: Any) -> tuple[Any, ...]:
    """Return the groups of a user. Empty for a user unknown to the Hub's database.

    >>> groups_of(None)
    ()
    """
    found = getattr(user, "groups", None)
    return tuple(found) if isinstance(found, Iterable) else ()


def build_quotas(groups: Iterable[Any]) -> dict[str, int | None]:
    """Map each group of a user to its property ``benchpool.build_quota``, or None."""
    return {group.name: group_quota(group.name, group.properties).gpus for group in groups}


def is_shortage(error: BenchpoolError) -> bool:
    """Return whether the error means that GPUs within the quota are not free now.

    >>> is_shortage(Unavailable("1 GPU is not free.", code="build-capacity"))
    True
    """
    return isinstance(error, Unavailable | TooMany) and error.code.startswith(("build-", "line-"))
