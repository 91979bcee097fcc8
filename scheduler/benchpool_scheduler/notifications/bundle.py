"""Several messages as one bundle: its subject, its plain text, its JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256

import msgspec

from benchpool_scheduler.notifications.events import Message
from benchpool_scheduler.phrases import count, visible

MOST_LINES = 30
LONGEST = 500


@dataclass(frozen=True, slots=True)
class Bundle:
    """Messages that one user gets together.

    Attributes:
        messages: At least one, the oldest first.
        base_url: The service's public address; a path without a host makes no links.
    """

    messages: tuple[Message, ...]
    base_url: str = ""

    @property
    def id(self) -> str:
        """ID, the same for the same messages."""
        ids = "\n".join(sorted(one.id for one in self.messages))
        return sha256(ids.encode()).hexdigest()[:32]

    @property
    def subject(self) -> str:
        """Subject, one line."""
        if len(self.messages) == 1:
            return f"benchpool: {plain_line(self.messages[0].text)[:120]}"
        return f"benchpool: {count(len(self.messages), 'message')}"

    @property
    def text(self) -> str:
        """Plain text; messages beyond the maximum are counted."""
        lines = [self._line(one) for one in self.messages[:MOST_LINES]]
        if (more := len(self.messages) - MOST_LINES) > 0:
            lines.append(f"And {count(more, 'further message')}: {self._link('jobs')}".rstrip(": "))
        return "\n\n".join(lines)

    @property
    def json(self) -> bytes:
        """Body of a webhook."""
        messages = [
            {
                "id": one.id,
                "event": one.event.value,
                "at": datetime.fromtimestamp(one.at, UTC),
                "text": plain_line(one.text),
                "url": self._link(one.path) or None,
            }
            for one in self.messages
        ]
        return msgspec.json.encode({"id": self.id, "text": self.subject, "messages": messages})

    def _line(self, one: Message) -> str:
        return " ".join(filter(None, (plain_line(one.text), self._link(one.path))))

    def _link(self, path: str) -> str:
        usable = path and self.base_url.startswith(("http://", "https://"))
        return f"{self.base_url.rstrip('/')}/{path}" if usable else ""


def bundled(messages: Sequence[Message], base_url: str) -> Bundle:
    """Return messages as one bundle, the oldest first."""
    return Bundle(tuple(sorted(messages, key=lambda one: (one.at, one.id))), base_url)


def plain_line(text: str) -> str:
    """Return one line of plain text without invisible characters.

    >>> plain_line("train\\nfailed.")
    'train failed.'
    """
    return visible(" ".join(text.split()))[:LONGEST]
