"""Configuration of the agent, from a launch to the JSON in its pod: pure.

All workers of an attempt have the same configuration, since they are pods of one template. The
agent adds the values that depend on its index. The configuration is stored in a Secret, because the
environment may hold secrets.
"""

from __future__ import annotations

import gzip

import msgspec

from benchpool_scheduler.contract.kubernetes import attempt_name
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.runtime import Launch
from benchpool_scheduler.runtime.kubernetes.agent import paths
from benchpool_scheduler.runtime.kubernetes.cluster_settings import ClusterSettings

MOST_BYTES = 700_000
"""Most bytes of a packed configuration; a Secret holds 1 MiB, in base64."""


def agent_config(launch: Launch, settings: ClusterSettings, key: str = "") -> dict[str, object]:
    """Return the configuration of the agents of an attempt.

    Args:
        key: Secret by which the workers of this attempt authenticate each other.
    """
    at_home = launch.claim is not None
    home = launch.output_dir
    return {
        "version": 1,
        "job": launch.worker.job,
        "attempt": launch.worker.attempt,
        "url": settings.agent_url.rstrip("/"),
        "argv": list(launch.argv),
        "env": {**launch.env, "BENCHPOOL_GANG_KEY": key} if key else dict(launch.env),
        "cwd": None if launch.working_dir is None else str(launch.working_dir),
        "files": [(file.path, file.sha256, file.executable) for file in launch.files],
        "objects": list(launch.objects),
        "home": str(home) if at_home and home is not None else None,
        "checkpoint": checkpoint(launch),
        "carries": not at_home,
        "grace_s": launch.grace_s,
        "time_limit_s": launch.time_limit_s,
        "log_bytes": settings.log_bytes,
        "carry_bytes": settings.carry_bytes,
        "workers": len(launch.nodes),
        "processes": max(1, len(launch.gpus)),
        "gpus": len(launch.gpus),
        "master": master(launch, settings),
        "port": launch.port,
    }


def checkpoint(launch: Launch) -> str:
    """Return the checkpoint folder of all attempts: on the home volume if there is one."""
    if launch.claim is None:
        return paths.CHECKPOINT
    return f"{launch.claim_path.rstrip('/')}/.benchpool/jobs/{launch.worker.job}/checkpoint"


def master(launch: Launch, settings: ClusterSettings) -> str:
    """Return the rendezvous host: the DNS name of worker 0, which outlives its address.

    A single worker uses the loopback address.
    """
    if len(launch.nodes) == 1:
        return "127.0.0.1"
    return host(launch, 0, settings)


def host(launch: Launch, index: int, settings: ClusterSettings) -> str:
    """Return the DNS name of a worker's pod in the cluster."""
    name = attempt_name(launch.worker.job, launch.worker.attempt)
    return f"{name}-{index}.{name}.{settings.namespace}.svc"


def pack(config: dict[str, object]) -> bytes:
    """Return a configuration as bytes. Raises InvalidInput if it does not fit."""
    packed = gzip.compress(msgspec.json.encode(config), mtime=0)
    if len(packed) > MOST_BYTES:
        raise InvalidInput(
            f"The list of files and variables of the job has {len(packed)} bytes when packed; the "
            f"limit of a pod is {MOST_BYTES}. Send fewer files, and keep data where jobs can read "
            "it.",
            field="files",
            numbers={"bytes": len(packed), "limit": MOST_BYTES},
        )
    return packed
