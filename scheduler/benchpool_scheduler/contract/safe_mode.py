"""What runs and is not known, what cannot be read, and what an administrator decides about it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

ID = Annotated[str, Meta(pattern="^[a-z0-9]{4,26}$")]


class AdoptionRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """What shall become of it; nothing at all only looks."""

    id: (
        Annotated[
            ID, Meta(description="The job, or the bench, that is meant; the others stay listed.")
        ]
        | None
    ) = None
    end: Annotated[bool, Meta(description="End it instead of taking it in.")] = False
    go_on: Annotated[
        bool, Meta(description="Let new work begin again after the database was lost or damaged.")
    ] = False

    @property
    def only_asks(self) -> bool:
        """Nothing is to be decided."""
        return self.id is None and not self.go_on


class UnknownRun(Struct, frozen=True):
    """A job that runs, and that the database does not know, or not this attempt of it.

    ``gpus`` is null where it cannot be told. ``in_line``: the database has it as a job that waits.
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
    """A record that is there and cannot be read; ``gpus`` are given to nobody meanwhile."""

    kind: str
    id: str
    file: str
    why: str
    gpus: list[str]


class SafeModeIssues(Struct, frozen=True):
    """Answer of ``adopt``: what is not known. ``hold`` is why nothing new begins, else null.

    ``hub`` tells what the Hub's own database has lost, else null.
    """

    hold: str | None
    unknown: list[UnknownRun]
    unreadable: list[UnreadableRecord]
    hub: str | None = None
