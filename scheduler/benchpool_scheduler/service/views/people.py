"""Users of the pool: their names, quotas and last activity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

from benchpool_scheduler.configuration import EVERYBODY, Configuration, written
from benchpool_scheduler.contract.people import Person
from benchpool_scheduler.hub import HubUser
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.access.membership import usable_projects
from benchpool_scheduler.service.benches import bench_reserve
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState


class People:
    """Lists the users of the pool."""

    def __init__(self, ledger: Ledger, observed: SchedulerState) -> None:
        self._ledger = ledger
        self._observed = observed

    def all(self, caller: Caller) -> list[Person]:
        """Return the Hub's users, users in the configuration, and owners of benches or live jobs.

        They are sorted by name. Services of the Hub that own jobs are included.

        Errors: Forbidden for callers other than administrators.
        """
        rights.require_admin(caller, "list the users of the pool")
        seen = self._observed.now
        # Read from the Hub's last response: the time of last activity is not in the observations.
        known = {user.name: user for user in self._observed.settings.directory.users()}
        held: Counter[str] = Counter()
        for lease in self._ledger.leases():
            held[lease.user] += len(lease.gpus)
        owners = {job.user for job in self._ledger.live() if job.user}
        names = sorted({*known, *_named(seen.configuration), *held, *owners})
        return [self._person(name, known.get(name), held[name]) for name in names]

    def _person(self, name: str, user: HubUser | None, held: int) -> Person:
        seen = self._observed.now
        configuration = seen.configuration
        groups = {} if user is None else user.groups
        quota, rule = bench_reserve.quota_of(seen, name, groups)
        as_caller = Caller(name, groups=frozenset(groups))
        last = None if user is None else user.last_seen
        return Person(
            name=name,
            quota=quota,
            rule=rule,
            held=held,
            admin=user is not None and user.admin,
            known=user is not None,
            jobs=self._ledger.live_of(name),
            groups=sorted(groups),
            projects=[str(each.name) for each in usable_projects(as_caller, configuration)],
            leads=[
                str(each.name)
                for each in configuration.projects
                if rights.is_among(as_caller, each.leads)
            ],
            last_seen=None if last is None else datetime.fromtimestamp(last, UTC),
        )


def _named(configuration: Configuration) -> Iterator[str]:
    """Yield the users whom a configuration names, without groups and the word for everyone."""
    yield from configuration.build.users
    for project in written(configuration).projects:
        for person in (*project.members, *project.leads):
            if not person.startswith("group:") and person != EVERYBODY:
                yield person
