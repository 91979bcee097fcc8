"""The environment of the job's command in a pod (formats, section 7): pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchpool_scheduler.worker import job_package, records
from benchpool_scheduler.worker.rendezvous import rendezvous

from . import paths

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .config import AgentConfig

NOT_PASSED_ON = ("KUBERNETES_", "JUPYTERHUB_", "BENCHPOOL_AGENT_", paths.INDEX, "HOSTNAME")
"""Prefixes of the pod's variables that are not passed to the job."""

EXCHANGE = f"{paths.WORKER}/{records.EXCHANGE}"
NOTICE = f"{EXCHANGE}/{records.NOTICE}"


def environment(config: AgentConfig, image: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the command: the image's, the job's and the agent's variables."""
    own = {name: value for name, value in image.items() if not name.startswith(NOT_PASSED_ON)}
    if own.get("HOME", "/") == "/":
        own["HOME"] = paths.ROOT  # an account that is unknown to the image has no home
    variables = {**own, **config.env}
    return {
        "PYTHONUNBUFFERED": "1",
        **variables,
        "PYTHONPATH": job_package.on_path(variables, paths.PACKAGE),
        "BENCHPOOL_CHECKPOINT_DIR": config.checkpoint,
        "BENCHPOOL_OUTPUT_DIR": paths.OUTPUT,
        "BENCHPOOL_NOTICE_FILE": NOTICE,
        "BENCHPOOL_PROGRESS_FILE": f"{EXCHANGE}/{records.PROGRESS}",
        "BENCHPOOL_METRICS_FILE": f"{EXCHANGE}/{records.METRICS}",
        "BENCHPOOL_RUNS_FILE": f"{EXCHANGE}/{records.RUNS}",
        "CUDA_VISIBLE_DEVICES": devices(image, config.gpus),
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        **rendezvous(config.master, config.port, config.workers, config.index, config.processes),
        # Each worker has its own copy of a carried folder; see benchpool.checkpoint.votes.
        **({"BENCHPOOL_CHECKPOINT_SHARED": "no"} if config.carries and config.workers > 1 else {}),
    }


def devices(image: Mapping[str, str], gpus: int) -> str:
    """Return the GPUs that the node gave to this pod, as far as its device plugin reports them.

    >>> devices({"NVIDIA_VISIBLE_DEVICES": "GPU-1,GPU-2"}, 2), devices({}, 2), devices({}, 0)
    ('GPU-1,GPU-2', '0,1', '')
    """
    given = image.get("CUDA_VISIBLE_DEVICES")
    if given is not None and given not in ("all", "void", "none"):
        return given
    visible = image.get("NVIDIA_VISIBLE_DEVICES", "")
    if visible and visible not in ("all", "void", "none") and "/" not in visible:
        return visible
    return ",".join(str(index) for index in range(gpus))
