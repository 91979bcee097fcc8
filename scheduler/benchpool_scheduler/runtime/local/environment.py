"""Environment of a worker (formats, section 7): pure."""

from __future__ import annotations

from collections.abc import Mapping

from benchpool_scheduler.runtime import Launch, WorkerId
from benchpool_scheduler.worker import job_package, records
from benchpool_scheduler.worker.folders import Folders
from benchpool_scheduler.worker.rendezvous import rendezvous


def environment(launch: Launch, folders: Folders) -> dict[str, str]:
    """Return the environment of a worker: the launch's variables and this runtime's.

    Python's output is unbuffered unless the launch sets it otherwise, so that the log is live.
    """
    return {
        "PYTHONUNBUFFERED": "1",
        **launch.env,
        "PYTHONPATH": job_package.on_path(launch.env, str(job_package.place(folders.state))),
        **_places(launch, folders),
        **_rendezvous(launch),
    }


def tag(worker: WorkerId, folders: Folders) -> str:
    """Return the variable, as ``NAME=value``, that identifies the processes of a worker."""
    return f"BENCHPOOL_NOTICE_FILE={folders.exchange(worker) / records.NOTICE}"


def _places(launch: Launch, folders: Folders) -> Mapping[str, str]:
    exchange = folders.exchange(launch.worker)
    return {
        "BENCHPOOL_CHECKPOINT_DIR": str(folders.checkpoint(launch.worker.job)),
        "BENCHPOOL_OUTPUT_DIR": str(folders.output(launch.worker.job)),
        "BENCHPOOL_NOTICE_FILE": str(exchange / records.NOTICE),
        "BENCHPOOL_PROGRESS_FILE": str(exchange / records.PROGRESS),
        "BENCHPOOL_METRICS_FILE": str(exchange / records.METRICS),
        "BENCHPOOL_RUNS_FILE": str(exchange / records.RUNS),
        "CUDA_VISIBLE_DEVICES": ",".join(launch.gpus),
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }


def _rendezvous(launch: Launch) -> Mapping[str, str]:
    """Return the rendezvous variables; on one machine the gang uses the loopback address."""
    gang, processes = len(launch.nodes), max(1, len(launch.gpus))
    return rendezvous("127.0.0.1", launch.port, gang, launch.worker.worker, processes)
