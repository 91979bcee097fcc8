"""Access requests to projects, and the decisions on them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from benchpool_scheduler.contract.scalars import Name

AccessReason = Annotated[str, Meta(max_length=500, description="Reason, for the users who decide.")]
Answered = Annotated[str, Meta(max_length=500, description="Reason, shown to that user.")]


class AccessAsk(Struct, frozen=True, forbid_unknown_fields=True):
    """Access request of the caller for a project."""

    project: Annotated[Name, Meta(description="Name of the project.")]
    reason: AccessReason | None = None


class AccessDecision(Struct, frozen=True, forbid_unknown_fields=True):
    """Decision on a user's membership in a project: add, remove or decline."""

    project: Annotated[Name, Meta(description="Name of the project.")]
    user: Annotated[Name, Meta(description="Name of the user.")]
    reason: Answered | None = None


class AccessRequest(Struct, frozen=True):
    """Access request that has not been granted.

    ``declined`` is the reason of the refusal, null while the request is open. ``decides`` is
    whether the reader may decide on it.
    """

    user: str
    project: str
    at: datetime
    reason: str
    declined: str | None = None
    decides: bool = False
