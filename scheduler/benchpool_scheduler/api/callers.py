"""Which callers may use an operation at all, by what the table says."""

from __future__ import annotations

from benchpool_scheduler.contract.operation import Who
from benchpool_scheduler.service import Caller


def allowed(who: Who, caller: Caller) -> bool:
    """Say whether a caller may use a route at all.

    >>> allowed(Who.OPERATOR, Caller("hub", kind="service")), allowed(Who.ADMIN, Caller("susan"))
    (True, False)
    """
    match who:
        case Who.ADMIN:
            return caller.admin
        case Who.OPERATOR:
            return caller.admin or caller.kind == "service"
    return True


WORDS = {Who.ADMIN: "an administrator", Who.OPERATOR: "the Hub's services and administrators"}
