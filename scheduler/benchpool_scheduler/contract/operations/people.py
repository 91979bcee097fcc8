"""Operations on users."""

from __future__ import annotations

from benchpool_scheduler.contract.forms import PlainVerb
from benchpool_scheduler.contract.operation import Given, Who, given, operation
from benchpool_scheduler.contract.people import Person


class PeopleOperations:
    """Users of the pool."""

    @operation(
        "GET",
        "people",
        list[Person],
        who=Who.ADMIN,
        verb=PlainVerb(
            ("people",),
            "List users with build quota and its source, projects, and time last seen.",
        ),
    )
    def people(self) -> Given:
        """List the users of the Hub and of the configuration.

        By name.
        """
        return given()
