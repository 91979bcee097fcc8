"""The service's surroundings: its settings, and the newest observations, replaced as a whole."""

from __future__ import annotations

from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.service.observed.observations import Observations
from benchpool_scheduler.service.observed.service_settings import ServiceSettings


class Observed:
    """Holds the newest observations for all who read them. Only the loop's thread writes.

    Whoever needs several facts that belong together takes ``now`` once and reads from that.

    Attributes:
        settings: What does not change while the service runs.
    """

    def __init__(self, settings: ServiceSettings, configuration: Configuration) -> None:
        self.settings = settings
        self._now = Observations.of(configuration, settings.directory.users())

    @property
    def now(self) -> Observations:
        """The newest observations."""
        return self._now

    def put(self, now: Observations) -> None:
        """Replace the observations."""
        self._now = now

    def report(self, topic: str, sentence: str | None) -> None:
        """Say something that people who look after the pool must know; None clears it."""
        if self._now.problems.get(topic) != sentence:
            self.put(self._now.with_problem(topic, sentence))

    async def ask_hub(self) -> None:
        """Learn users and servers from the Hub. Errors: Unavailable; the last answer stays."""
        directory = self.settings.directory
        await directory.refresh()
        users = directory.users()
        if users != self._now.users.users:
            self.put(self._now.with_users(users))
