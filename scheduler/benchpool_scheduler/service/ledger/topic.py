"""Events that parts of the service publish without knowledge of their subscribers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

News = TypeVar("News")


class Topic(Generic[News]):
    """One kind of event. Subscribers are called in the order in which they subscribed.

    >>> jobs: Topic[str] = Topic()
    >>> jobs.subscribe(print)
    >>> jobs.publish("job k3 changed")
    job k3 changed
    """

    def __init__(self) -> None:
        self._subscribers: list[Callable[[News], None]] = []

    def subscribe(self, subscriber: Callable[[News], None]) -> None:
        """Call the subscriber with all further events."""
        self._subscribers.append(subscriber)

    def publish(self, news: News) -> None:
        """Call all subscribers before returning."""
        for subscriber in self._subscribers:
            subscriber(news)
