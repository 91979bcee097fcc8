"""The environment of a worker (formats, section 7): pure."""

from __future__ import annotations

from collections.abc import Mapping

from benchpool_scheduler.runtime import Launch

from .folders import Folders
from .supervisor import records


def environment(launch: Launch, folders: Folders) -> dict[str, str]:
    """Return all that the worker finds: what the launch says, and what this runtime adds.

    Python's output is unbuffered unless the launch says otherwise, so that the log is live.
    """
    return {"PYTHONUNBUFFERED": "1", **launch.env, **_places(launch, folders), **rendezvous(launch)}


def tag(launch: Launch, folders: Folders) -> str:
    """Return the one variable, as ``NAME=value``, that no other worker has."""
    return f"BENCHPOOL_NOTICE_FILE={folders.exchange(launch.worker) / records.NOTICE}"


def _places(launch: Launch, folders: Folders) -> Mapping[str, str]:
    exchange = folders.exchange(launch.worker)
    return {
        "BENCHPOOL_CHECKPOINT_DIR": str(folders.checkpoint(launch.worker.job)),
        "BENCHPOOL_OUTPUT_DIR": str(folders.output(launch.worker.job)),
        "BENCHPOOL_NOTICE_FILE": str(exchange / records.NOTICE),
        "BENCHPOOL_PROGRESS_FILE": str(exchange / records.PROGRESS),
        "CUDA_VISIBLE_DEVICES": ",".join(launch.gpus),
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }


def rendezvous(launch: Launch) -> Mapping[str, str]:
    """Return what torchrun and others read; on one machine the gang meets on the loopback.

    ``WORLD_SIZE`` counts processes, one for each GPU. Rank and local rank are known only when a
    worker is one process; else its own launcher (``torchrun``) gives them to its processes.
    """
    processes = max(1, len(launch.gpus))
    workers = len(launch.nodes)
    found = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(launch.port),
        "WORLD_SIZE": str(workers * processes),
        "NNODES": str(workers),
        "NODE_RANK": str(launch.worker.worker),
        "NPROC_PER_NODE": str(processes),
    }
    if processes == 1:
        found |= {"RANK": str(launch.worker.worker), "LOCAL_RANK": "0"}
    return found
