"""Who asks to belong to a project, and who is let in."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from benchpool_scheduler.contract.scalars import Name

Wish = Annotated[str, Meta(max_length=500, description="Why, for those who decide to read.")]
Answered = Annotated[str, Meta(max_length=500, description="Why, for that user to read.")]


class AccessAsk(Struct, frozen=True, forbid_unknown_fields=True):
    """A wish to belong to a project."""

    project: Annotated[Name, Meta(description="Which one.")]
    reason: Wish | None = None


class AccessDecision(Struct, frozen=True, forbid_unknown_fields=True):
    """Who is let into a project, sent out of it, or declined."""

    project: Annotated[Name, Meta(description="Which one.")]
    user: Annotated[Name, Meta(description="Who.")]
    reason: Answered | None = None


class AccessRequest(Struct, frozen=True):
    """A wish that was not granted yet.

    ``declined`` is why it was, null while nobody has decided; ``decides`` whether the reader may.
    """

    user: str
    project: str
    at: datetime
    reason: str
    declined: str | None = None
    decides: bool = False
