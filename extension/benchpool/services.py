"""Services in Python: a script of this folder that answers requests."""

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
"""How often it is looked whether a service answers."""

OWN = frozenset(inspect.signature(service_requests.request_of).parameters) - {"name", "submission"}
"""Keywords of ``serve`` that are of the service; the others are those of ``submit``."""


class ServiceHandle:
    """A service: how it is, its address, and what lets it sleep and stops it.

    Attributes:
        facts: The service as it was when it was last looked at.
    """

    def __init__(self, facts: PoolService) -> None:
        self.facts = facts

    @property
    def name(self) -> str:
        """Its name."""
        return self.facts.name

    @property
    def url(self) -> str:
        """Its address."""
        known = handles.client().credentials
        return urljoin(f"{known.page or known.url}/", self.facts.url)

    @property
    def state(self) -> str:
        """``ready``, ``starting``, ``asleep``, ``paused``, ``failed`` or ``stopped``."""
        return self.refresh().facts.state.value

    @property
    def replicas(self) -> list[ServiceReplica]:
        """Its replicas, each with the id of its job."""
        return self.refresh().facts.replicas

    def refresh(self) -> Self:
        """Look at it anew."""
        self.facts = handles.client().service(self.name)
        return self

    def wait(self) -> Self:
        """Wait until it answers. Errors: Refused when it fails or was stopped, with the reason."""
        while (state := self.refresh().facts.state) is not ServiceState.READY:
            if state in (ServiceState.FAILED, ServiceState.STOPPED):
                raise Refused(f"{self.name} does not answer. {self.facts.text}")
            time.sleep(LOOK_S)
        return self

    def sleep(self) -> Self:
        """Give its GPUs back until it is asked."""
        self.facts = handles.client().sleep_service(self.name)
        return self

    def wake(self) -> Self:
        """Let it have replicas again."""
        self.facts = handles.client().wake_service(self.name)
        return self

    def stop(self) -> Self:
        """Stop it until it is woken."""
        self.facts = handles.client().stop_service(self.name)
        return self

    def remove(self) -> None:
        """Remove it, and end its replicas at once."""
        handles.client().remove_service(self.name)

    def __repr__(self) -> str:
        return f"{self.name} at {self.url}: {self.facts.state.value}. {self.facts.text}"


def serve(
    name: str, what: str | os.PathLike[str], /, *args: object, **options: Any
) -> ServiceHandle:
    """Serve a script of this folder at an address of the Hub, and return the service.

    Args:
        name: Of the service: small letters, digits and hyphens; a part of its address.
        what: A ``.py`` or ``.ipynb`` file, which listens on the port that it finds in ``PORT``.
        args: Its arguments; ``{port}`` and ``{prefix}`` stand for the port and the address's path.
        options: ``port``, ``min``, ``max``, ``idle``, ``in_flight``, ``readiness``, ``access``,
            ``keep_prefix`` and ``update``, as in ``benchpool serve``; ``gpus``, ``project``,
            ``priority``, ``preemptible``, ``gpu_models``, ``cpus``, ``memory_gib``, ``env`` and
            ``tags`` as in ``submit``.

    Raises:
        InvalidInput: There is no such script, or a value makes no sense.
        Refused: A rule of the pool says no, with the numbers.
    """
    asked = {key: one for key, one in options.items() if key not in OWN}
    draft = file_drafts.draft_of(Path(what), args, asked, uuid.uuid4().hex)
    return begun(name, draft, {key: one for key, one in options.items() if key in OWN})


def begun(name: str, draft: Draft, own: Mapping[str, Any]) -> ServiceHandle:
    """Begin a service of what a draft sends; ``own`` are its keywords in ``OWN``."""
    handles.say_problems(draft)
    submission = replace(draft.submission, key=None, name=None, output_dir=None)
    request = service_requests.request_of(name, submission, **own)
    snapshot.upload(handles.client(), draft.contents)
    return ServiceHandle(handles.client().serve(request))
