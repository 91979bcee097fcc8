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
            "Say who there is: build quota and where it comes from, projects, when last seen.",
        ),
    )
    def people(self) -> Given:
        """List the users of the Hub and of the configuration.

        By name.
        """
        return given()
