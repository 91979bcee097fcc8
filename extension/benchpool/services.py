"""Services: a script of this folder that answers requests."""

from __future__ import annotations

import inspect
import os
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urljoin

from msgspec.structs import replace

from benchpool import file_drafts, handles
from benchpool_scheduler.client import service_requests, snapshot
from benchpool_scheduler.contract.serving import PoolService, ServiceReplica, ServiceState
from benchpool_scheduler.errors import Refused

if TYPE_CHECKING:
    from benchpool.drafts import Draft

LOOK_S = 0.5
"""Poll interval while waiting for a service, in seconds."""

OWN = frozenset(inspect.signature(service_requests.request_of).parameters) - {"name", "submission"}
"""Keywords of ``serve`` for the service itself; the others are those of ``submit``."""


class ServiceHandle:
    """Service of the pool, with its state and address, and methods to stop and wake it.

    Attributes:
        facts: The service as last read.
    """

    def __init__(self, facts: PoolService) -> None:
        self.facts = facts

    @property
    def name(self) -> str:
        """Name of the service."""
        return self.facts.name

    @property
    def url(self) -> str:
        """Address of the service."""
        known = handles.client().credentials
        return urljoin(f"{known.page or known.url}/", self.facts.url)

    @property
    def state(self) -> str:
        """Present state, read from the pool.

        One of ``ready``, ``starting``, ``asleep``, ``paused``, ``failed`` or ``stopped``.
        """
        return self.refresh().facts.state.value

    @property
    def replicas(self) -> list[ServiceReplica]:
        """Replicas of the service, each with the ID of its job."""
        return self.refresh().facts.replicas

    def refresh(self) -> Self:
        """Read the service again and return it."""
        self.facts = handles.client().service(self.name)
        return self

    def wait(self) -> Self:
        """Wait until the service answers requests and return it.

        Raises:
            Refused: The service failed or was stopped; the message gives the reason.
        """
        while (state := self.refresh().facts.state) is not ServiceState.READY:
            if state in (ServiceState.FAILED, ServiceState.STOPPED):
                raise Refused(f"{self.name} does not answer. {self.facts.text}")
            time.sleep(LOOK_S)
        return self

    def sleep(self) -> Self:
        """Let the service release its GPUs until the next request."""
        self.facts = handles.client().sleep_service(self.name)
        return self

    def wake(self) -> Self:
        """Let the service have replicas again."""
        self.facts = handles.client().wake_service(self.name)
        return self

    def stop(self) -> Self:
        """Stop the service until it is woken."""
        self.facts = handles.client().stop_service(self.name)
        return self

    def remove(self) -> None:
        """Remove the service, and end its replicas at once."""
        handles.client().remove_service(self.name)

    def __repr__(self) -> str:
        return f"{self.name} at {self.url}: {self.facts.state.value}. {self.facts.text}"


def serve(
    name: str, what: str | os.PathLike[str], /, *args: object, **options: Any
) -> ServiceHandle:
    """Serve a script of this folder at an address of the Hub, and return the service.

    Args:
        name: Name of the service: lower-case letters, digits and hyphens; a part of its address.
        what: A ``.py`` or ``.ipynb`` file that listens on the port in ``PORT``.
        args: Its arguments; ``{port}`` and ``{prefix}`` stand for the port and the address's path.
        options: ``port``, ``min``, ``max``, ``idle``, ``in_flight``, ``readiness``, ``access``,
            ``keep_prefix`` and ``update``, as in ``benchpool serve``; ``gpus``, ``project``,
            ``priority``, ``preemptible``, ``gpu_models``, ``cpus``, ``memory_gib``, ``env`` and
            ``tags`` as in ``submit``.

    Raises:
        InvalidInput: The script does not exist, or a value is invalid.
        Refused: A rule of the pool rejects the service. The message has the numbers.
    """
    asked = {key: one for key, one in options.items() if key not in OWN}
    draft = file_drafts.draft_of(Path(what), args, asked, uuid.uuid4().hex)
    return begun(name, draft, {key: one for key, one in options.items() if key in OWN})


def begun(name: str, draft: Draft, own: Mapping[str, Any]) -> ServiceHandle:
    """Start a service from a draft; ``own`` are its keywords in ``OWN``."""
    handles.report_problems(draft)
    submission = replace(draft.submission, key=None, name=None, output_dir=None)
    request = service_requests.request_of(name, submission, **own)
    snapshot.upload(handles.client(), draft.contents)
    return ServiceHandle(handles.client().serve(request))
