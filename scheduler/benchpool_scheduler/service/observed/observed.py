"""State of the scheduler: its settings, and the newest observations, replaced as a whole."""

from __future__ import annotations

from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.hub import HubUser
from benchpool_scheduler.service.ledger.topic import Topic
from benchpool_scheduler.service.observed.left_users import LeftUsers
from benchpool_scheduler.service.observed.observations import Observations
from benchpool_scheduler.service.observed.service_settings import ServiceSettings


class SchedulerState:
    """Holds the newest observations for all readers. Only the loop's thread writes.

    A reader that needs several consistent facts takes ``now`` once and reads from that value.

    Attributes:
        settings: Settings that do not change while the service runs.
        replaced: Publishes the observations each time they are replaced.
        left_users: Users who were removed or renamed in the Hub.
    """

    def __init__(self, settings: ServiceSettings, configuration: Configuration) -> None:
        self.settings = settings
        self.replaced: Topic[Observations] = Topic()
        self.left_users = LeftUsers()
        users = settings.directory.users()
        first = Observations.of(configuration, users, settings.default_amounts)
        self._now = first.as_of(settings.clock.now())

    @property
    def now(self) -> Observations:
        """The newest observations."""
        return self._now

    def put(self, now: Observations) -> None:
        """Replace the observations, with the reservations of the present instant."""
        self._now = now.as_of(self.settings.clock.now())
        self.replaced.publish(self._now)

    def report(self, topic: str, sentence: str | None) -> None:
        """Report a problem to administrators; None clears it."""
        if self._now.problems.get(topic) != sentence:
            self.put(self._now.with_problem(topic, sentence))

    def meet(self, user: HubUser) -> None:
        """Add a user whom the Hub has not listed yet and who may need a personal project."""
        seen = self._now
        if seen.configuration.offers_personal and user.name not in seen.users.by_name:
            self.put(seen.with_users((*seen.users.users, user)))

    async def ask_hub(self) -> None:
        """Update users and servers from the Hub. Errors: Unavailable; the last response stays."""
        directory, asked = self.settings.directory, self.settings.clock.now()
        await directory.refresh()
        self.left_users.learn(directory.users(), asked)
        self.report("groups", " ".join(directory.problems()) or None)
        users = directory.users()
        if users != self._now.users.users:
            self.put(self._now.with_users(users))
