"""Safe mode: unknown runs, unreadable records, and an administrator's decision on them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

ID = Annotated[str, Meta(pattern="^[a-z0-9]{4,26}$")]


class AdoptionRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Decision on an unknown run. An empty request only lists."""

    id: (
        Annotated[ID, Meta(description="Job or bench to decide on; the others stay listed.")] | None
    ) = None
    end: Annotated[bool, Meta(description="End it instead of adopting it.")] = False
    go_on: Annotated[
        bool, Meta(description="Allow new work again after the database was lost or damaged.")
    ] = False

    @property
    def only_asks(self) -> bool:
        """Return whether the request decides nothing."""
        return self.id is None and not self.go_on


class UnknownRun(Struct, frozen=True):
    """Running job, or attempt of a job, that the database does not know.

    ``gpus`` is null where unknown. ``in_line`` is whether the database has the job as queued.
    """

    id: str
    attempt: int
    name: str
    project: str
    user: str
    gpus: list[str] | None
    since: datetime | None
    in_line: bool


class UnreadableRecord(Struct, frozen=True):
    """Stored record that cannot be read. Its ``gpus`` are blocked meanwhile."""

    kind: str
    id: str
    file: str
    why: str
    gpus: list[str]


class SafeModeIssues(Struct, frozen=True):
    """Answer of ``adopt``: unknown runs and unreadable records.

    ``hold`` is why no new work begins, else null. ``hub`` describes the data that the Hub's own
    database has lost, else null.
    """

    hold: str | None
    unknown: list[UnknownRun]
    unreadable: list[UnreadableRecord]
    hub: str | None = None
