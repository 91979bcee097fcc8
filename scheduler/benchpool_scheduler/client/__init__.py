"""Python client of benchpool: the operations of the API, synchronous and asynchronous.

``Client`` is for terminals and kernels, even with a running event loop. ``AsyncClient`` is for
services. Both raise the errors of ``benchpool_scheduler.errors`` with the service's own message.

    with Client(discover(os.environ)) as pool:
        job = pool.submit(JobSubmission(entry=ScriptEntry(path="train.py"), gpus=2))
        for piece in pool.follow_log(job.id):
            print(piece.text, end="")
"""

from benchpool_scheduler.client.aio import AsyncClient
from benchpool_scheduler.client.credentials import (
    Credentials,
    discover,
    folder_of_running,
    state_folder,
)
from benchpool_scheduler.client.plain import Client
from benchpool_scheduler.contract import LogRange, LogText, PoolEvent
from benchpool_scheduler.contract.operation import Call

__all__ = [
    "AsyncClient",
    "Call",
    "Client",
    "Credentials",
    "LogRange",
    "LogText",
    "PoolEvent",
    "discover",
    "folder_of_running",
    "state_folder",
]
