"""Measurement of GPUs and workers of a cluster, as set by the site."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from benchpool_scheduler.app.cluster_options import ClusterOptions
from benchpool_scheduler.contract.kubernetes import NODE_AGENT_AUDIENCE
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.kube import Connection, PodTokens
from benchpool_scheduler.runtime import WorkerId
from benchpool_scheduler.runtime.kubernetes import KubernetesRuntime
from benchpool_scheduler.telemetry import NO_SAMPLING, Sampling
from benchpool_scheduler.telemetry.dcgm import DcgmSampler
from benchpool_scheduler.telemetry.node_reports import NodePod, NodeReports
from benchpool_scheduler.telemetry.postgresql_storage import PostgreSql
from benchpool_scheduler.telemetry.sampler import NoWorkers


def chosen(options: ClusterOptions, runtime: KubernetesRuntime, every_s: float) -> Sampling:
    """Return the sampler and its store: node agents, dcgm-exporter, or none.

    Errors: InvalidInput if both are set, or if the database cannot be used.
    """
    address = options.telemetry_database
    storage = PostgreSql(address) if address else None
    return replace(_measuring(options, runtime, every_s), storage=storage)


def _measuring(options: ClusterOptions, runtime: KubernetesRuntime, every_s: float) -> Sampling:
    if options.node_agent and options.prometheus:
        raise InvalidInput(
            "BENCHPOOL_NODE_AGENT and BENCHPOOL_PROMETHEUS are both set, so GPUs would be counted "
            "twice. Set one of them.",
            field="node_agent",
        )
    if options.node_agent and every_s:
        reports = NodeReports(lambda: pods_of(runtime), every_s)
        return Sampling(reports, every_s, workers=reports, reports=reports)
    return dcgm_sampling(options.prometheus, runtime, every_s)


def dcgm_sampling(address: str, runtime: KubernetesRuntime, every_s: float) -> Sampling:
    """Return the sampler for dcgm-exporter. Without an address nothing is measured."""

    def pods() -> dict[tuple[str, str], tuple[str, ...]]:
        return {
            (pod.namespace, pod.name): pod.slots
            for pod in list(runtime.seen_pods)
            if pod.slots and pod.node and not pod.over
        }

    if not address:
        return NO_SAMPLING
    return Sampling(DcgmSampler(address, pods), every_s, workers=NoWorkers())


def node_identity(options: ClusterOptions, connection: Connection) -> PodTokens | None:
    """Return the identity check for node agents. None if no agents are expected."""
    if not options.node_agent:
        return None
    return PodTokens(connection, options.node_agent, NODE_AGENT_AUDIENCE)


def pods_of(runtime: KubernetesRuntime) -> Iterable[NodePod]:
    """Yield the workers and benches that have a node, identified by their labels."""
    for pod in list(runtime.seen_pods):
        if not pod.node or pod.over or pod.namespace != runtime.namespace:
            continue
        of = WorkerId(pod.job, pod.attempt, pod.index) if pod.job else pod.lease
        if of:
            yield NodePod(pod.namespace, pod.name, pod.uid, pod.node, pod.slots, of)
