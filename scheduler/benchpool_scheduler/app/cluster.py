"""Process on a cluster: one of several replicas leads and holds the pool, the others stand by.

All durable state is in the API server. A new leader rebuilds the pool from it. A replica that loses
its lead writes nothing more and exits with status 3, so that its container restarts and stands by.
Loss of the API server alone does not stop a leader: it answers reads from memory until its term
ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tornado.web import Application

from benchpool_scheduler import contract
from benchpool_scheduler.api import Api, HubIdentity, workers
from benchpool_scheduler.api.agent_endpoint import Agents
from benchpool_scheduler.app import cluster_sampling, pool_services, rereading, serving, standby
from benchpool_scheduler.app.cluster_configuration import ClusterConfiguration
from benchpool_scheduler.app.cluster_copies import ClusterCopies, how_to_copy
from benchpool_scheduler.app.cluster_options import ClusterOptions, own_name
from benchpool_scheduler.app.cluster_status import ClusterStatus
from benchpool_scheduler.app.request_origin import RequestOrigins
from benchpool_scheduler.app.settings import SchedulerApp
from benchpool_scheduler.client.name_lookup import ProxyAddresses
from benchpool_scheduler.contract.kubernetes import ELECTION_LEASE
from benchpool_scheduler.hub import HubDirectory
from benchpool_scheduler.kube import Connection, Election, ElectionTiming, NotLeading, connect
from benchpool_scheduler.runtime.kubernetes import KubernetesRuntime
from benchpool_scheduler.service import Containers, Pool
from benchpool_scheduler.store.kubernetes import FsspecObjects, KubernetesStore

log = logging.getLogger("benchpool_scheduler")

LOST_STATUS = 3
"""Exit status of a replica that has lost its lead."""


class Replica:
    """One replica, from its start to its end."""

    def __init__(self, settings: SchedulerApp) -> None:
        self._settings = settings
        self._options = ClusterOptions(parent=settings)
        self._state = Path(settings.state).absolute()
        self._secret = self._options.secret(self._state)
        self._stop = asyncio.Event()
        self._leading: Pool | None = None
        self._reading: set[asyncio.Task[None]] = set()
        self._standing_by = standby.client()
        self._proxies = ProxyAddresses(settings.proxies)
        self._origins = RequestOrigins(lambda: self._proxies.now, self._secret)
        self._identity = HubIdentity()
        hub_auth = self._identity.hub_auth
        self._directory = HubDirectory(hub_auth.api_url, hub_auth.api_token)

    async def run(self) -> None:
        """Stand by, lead after winning the election, and end on a stop signal."""
        options = self._options
        file = Path(options.kubeconfig) if options.kubeconfig else None
        self._listen_to_signals()
        async with connect(file) as for_election, connect(file) as connection:
            namespace = options.namespace or connection.namespace
            election = self._election(for_election, options.own_namespace or namespace)
            connection.guard = election.guard
            front = serving.Front(self._standby(election), self._origins)
            server = serving.http_server(front)
            looking_up = asyncio.create_task(self._proxies.keep())
            host, port = self._settings.address
            server.listen(port, host)
            log.info("standing by; serving %s on %s:%s", self._settings.prefix, host, port)
            try:
                if await self._wins(election):
                    await self._lead(election, connection, namespace, front)
            finally:
                looking_up.cancel()
                server.stop()
                await serving.within(serving.END_PATIENCE_S, server.close_all_connections())
                for closing in (self._standing_by.aclose, self._directory.close):
                    await closing()
                await self._identity.close()

    # ------------------------------------------------------------------ standing by

    def _election(self, connection: Connection, namespace: str) -> Election:
        options, port = self._options, self._settings.address[1]
        lease_s = options.lease_s
        return Election(
            connection,
            namespace,
            ELECTION_LEASE,
            own_name(options),
            address=f"http://{options.pod_ip}:{port}" if options.pod_ip else "",
            timing=ElectionTiming(lease_s, lease_s * 2 / 3, lease_s * 2 / 15),
        )

    def _standby(self, election: Election) -> Application:
        def leader() -> tuple[str, str] | None:
            known = election.leader
            if known is None or not known.holder or election.leads:
                return None
            return known.holder, known.address.rstrip("/")

        token = self._settings.metrics_token
        rules = standby.rules(
            self._settings.prefix, leader, self._standing_by, token, self._origins
        )
        return serving.application(rules, self._secret)

    async def _wins(self, election: Election) -> bool:
        """Wait to win the election. Return False if the process is stopped first."""
        winning = asyncio.create_task(election.win())
        stopping = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({winning, stopping}, return_when=asyncio.FIRST_COMPLETED)
            return winning.done() and winning.result() > 0
        finally:
            stopping.cancel()
            winning.cancel()

    # ------------------------------------------------------------------ leading

    async def _lead(
        self, election: Election, connection: Connection, namespace: str, front: serving.Front
    ) -> None:
        keeping = asyncio.create_task(election.keep())
        keeping.add_done_callback(self._lost)
        runtime = KubernetesRuntime(
            connection,
            self._options.runtime(namespace),
            state=self._state,
            secret=self._secret,
            epoch=lambda: election.epoch,
        )
        configuration = ClusterConfiguration(
            connection,
            Path(self._settings.configuration_file),
            self._state / "scheduler" / "in-force.yaml",
            election.epoch,
        )
        pool = await self._make_pool(election, connection, namespace, runtime, configuration)
        await pool.open()
        self._leading = pool
        status = ClusterStatus(connection, configuration, election.epoch)
        own = self._options.own_namespace or namespace
        copies = ClusterCopies(connection, own, self._options.copying)
        tasks = [
            asyncio.create_task(configuration.follow(pool)),
            asyncio.create_task(status.keep(pool)),
            asyncio.create_task(copies.keep(pool)),
        ]
        for task in tasks:
            task.add_done_callback(partial(_report_end, pool))
        api, prefix = self._api(pool, connection), self._settings.prefix
        hidden = self._settings.hidden_cookies
        gate = pool_services.gate_of(pool, self._identity, prefix, hidden)
        rules = [
            *workers.rules(self._agents(pool, runtime), prefix),
            *serving.rules_of(pool, api, self._identity, prefix, gate.routes()),
        ]
        front.application = serving.application(rules, self._secret)
        log.info("leading %s, epoch %d", namespace, election.epoch)
        try:
            await self._stop.wait()
        finally:
            log.info("stopping; jobs keep running")
            front.application = self._standby(election)
            await api.end()
            await gate.end()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await pool.close()
            keeping.remove_done_callback(self._lost)
            keeping.cancel()
            with contextlib.suppress(NotLeading, asyncio.CancelledError):
                await keeping
            await election.resign()

    def _agents(self, pool: Pool, runtime: KubernetesRuntime) -> Agents:
        carry_bytes = self._options.runtime(runtime.namespace).carry_bytes
        return Agents(runtime.agent_api, runtime.tokens, pool.contents, carry_bytes)

    def _api(self, pool: Pool, connection: Connection) -> Api:
        return Api(
            pool,
            self._identity,
            metrics_token=self._settings.metrics_token,
            nodes=cluster_sampling.node_identity(self._options, connection),
        )

    async def _make_pool(
        self,
        election: Election,
        connection: Connection,
        namespace: str,
        runtime: KubernetesRuntime,
        configuration: ClusterConfiguration,
    ) -> Pool:
        objects = FsspecObjects(self._options.objects or f"file://{self._state}/objects")
        reports: list[Pool] = []

        def report(sentence: str | None) -> None:
            for pool in reports:
                pool.observed.report("api-server", sentence)

        store = KubernetesStore(
            connection,
            namespace,
            objects,
            epoch=election.epoch,
            report=report,
            lost=lambda failed: _end(str(failed)),
        )
        pool = Pool(
            store,
            runtime,
            await configuration.first(),
            state=self._state,
            directory=self._directory,
            base_url=self._settings.public_url.rstrip("/"),
            environment=self._settings.worker_variables(os.environ),
            images=True,
            containers=Containers(
                home_of=runtime.home_of,
                nodes_for_claim=runtime.nodes_for_claim,
                pinned=runtime.pinned,
                home_path=self._options.home_path,
                backup=how_to_copy(
                    self._options.own_namespace or namespace,
                    self._options.copying,
                    self._options.release,
                ),
            ),
            default_amounts=self._options.default_amounts,
            announce=partial(_announce, store, runtime),
            contents=objects,
            keep_configuration=configuration.keep,
            notifications_file=Path(self._settings.notifications_file),
            sampling=cluster_sampling.chosen(self._options, runtime, self._settings.sample_s),
        )
        reports.append(pool)
        return pool

    def _lost(self, keeping: asyncio.Task[None]) -> None:
        failed = None if keeping.cancelled() else keeping.exception()
        if failed is not None:
            _end(str(failed))

    def _listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        loop.add_signal_handler(signal.SIGHUP, self._read_again)

    def _read_again(self) -> None:
        """Reload ``notifications.yaml`` (SIGHUP). The other settings are watched."""
        if self._leading is not None:
            reading = asyncio.create_task(rereading.notifications(self._leading))
            self._reading.add(reading)
            reading.add_done_callback(self._reading.discard)


def _announce(
    store: KubernetesStore, runtime: KubernetesRuntime, jobs: Sequence[contract.Job]
) -> None:
    """Write the reasons of waiting jobs to their objects and to pods of other systems."""
    store.announce(jobs)
    for job in jobs:
        if job.reason is not None:
            runtime.admits.write_reason(job.id, f"Job {job.id[:8]}: {job.reason.text}")


def _report_end(pool: Pool, task: asyncio.Task[None]) -> None:
    """Report that the task that follows the configuration has failed."""
    failed = None if task.cancelled() else task.exception()
    if failed is not None:
        log.error("background task of the cluster settings exited", exc_info=failed)
        pool.observed.report(
            "configuration",
            f"Changes of the cluster settings are no longer applied ({failed}). The present "
            "settings stay in force. Correct the cause and restart the scheduler.",
        )


def _end(why: str) -> None:
    """End the process immediately, so that nothing in progress is written any more."""
    log.error("%s", why)
    logging.shutdown()
    os._exit(LOST_STATUS)
