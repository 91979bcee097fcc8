"""What people who look after the pool must know: at most one sentence for each topic."""

from __future__ import annotations

from collections.abc import Mapping


class Problems:
    """The present problems of the service."""

    def __init__(self) -> None:
        self._by_topic: dict[str, str] = {}

    def report(self, topic: str, sentence: str | None) -> None:
        """Set the sentence of a topic; None clears it."""
        if sentence is None:
            self._by_topic.pop(topic, None)
        else:
            self._by_topic[topic] = sentence

    @property
    def by_topic(self) -> Mapping[str, str]:
        """The sentences, in the order in which their topics came up."""
        return self._by_topic
