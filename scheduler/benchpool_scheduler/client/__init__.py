"""The Python client of benchpool: one table of calls, a plain and an asynchronous client.

``Client`` is for terminals and for kernels, also where an event loop runs; ``AsyncClient`` for
services. Both raise the errors of ``benchpool_scheduler.errors`` with the service's own sentence.

    with Client(discover(os.environ)) as pool:
        job = pool.submit(JobSubmission(entry=ScriptEntry(path="train.py"), gpus=2))
        for piece in pool.follow_log(job.id):
            print(piece.text, end="")
"""

from benchpool_scheduler.client.aio import AsyncClient
from benchpool_scheduler.client.calls import Call, LogRange
from benchpool_scheduler.client.credentials import Credentials, discover, state_folder
from benchpool_scheduler.client.plain import Client
from benchpool_scheduler.client.streams import Event
from benchpool_scheduler.contract import LogText

__all__ = [
    "AsyncClient",
    "Call",
    "Client",
    "Credentials",
    "Event",
    "LogRange",
    "LogText",
    "discover",
    "state_folder",
]
