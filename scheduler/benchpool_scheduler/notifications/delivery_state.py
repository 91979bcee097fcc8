"""Stored state of notifications, in two small files that are always written whole."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from benchpool_scheduler.contract.notifications import NotificationEvent
from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.store import whole_files
from benchpool_scheduler.store.subscription_files import DELIVERY_LOG, SUBSCRIPTIONS

WAIT_S, PAUSED_S = 30 * 60, 30 * 60
"""Default times in the queue and paused after which a notification is sent, in seconds."""

Kept = TypeVar("Kept")


class KeptAddress(Struct, frozen=True, forbid_unknown_fields=True):
    """An address including its secret; ``reached`` in epoch seconds."""

    id: str
    url: str
    secret: str = ""
    reached: float | None = None
    failed: str | None = None


class Subscription(Struct, frozen=True, forbid_unknown_fields=True):
    """Events and addresses of one user; events before ``since`` (epoch seconds) are not sent."""

    user: str
    since: float
    events: tuple[NotificationEvent, ...]
    addresses: tuple[KeptAddress, ...] = ()
    wait_s: int = WAIT_S
    paused_s: int = PAUSED_S


class DeliveryLog(Struct, frozen=True, forbid_unknown_fields=True):
    """Log of sent messages, so that a restart does not send them again.

    Attributes:
        told: Time of each message, by user and ID. ``sent``: times of bundles, by user.
        since: Begin of each lasting condition, by name.
    """

    told: dict[str, dict[str, float]] = {}
    sent: dict[str, list[float]] = {}
    since: dict[str, float] = {}


class KeptNotifications:
    """Both files and their contents.

    Args:
        folder: Folder of the files.

    Attributes:
        subscriptions: By user.
        record: Log of sent messages.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = asyncio.Lock()
        self.subscriptions: Mapping[str, Subscription] = {}
        self.record = DeliveryLog()

    async def open(self) -> None:
        """Read both files. Errors: OSError, ValueError."""
        subscriptions = await asyncio.to_thread(self._read, SUBSCRIPTIONS, list[Subscription])
        record = await asyncio.to_thread(self._read, DELIVERY_LOG, DeliveryLog)
        self.subscriptions = {one.user: one for one in subscriptions or ()}
        self.record = record or DeliveryLog()

    async def change(
        self, user: str, after: Callable[[Subscription | None], Subscription | None]
    ) -> None:
        """Replace the subscription of a user; None leaves it unchanged.

        Errors: Unavailable, and nothing has changed; those of ``after``.
        """
        async with self._lock:
            changed = after(self.subscriptions.get(user))
            if changed is None:
                return
            subscriptions = {**self.subscriptions, user: changed}
            data = msgspec.json.encode(list(subscriptions.values()))
            file = self._folder / SUBSCRIPTIONS
            try:
                await asyncio.to_thread(whole_files.write, file, data)
            except OSError as failed:
                raise Unavailable(
                    f"{file} cannot be written ({failed.strerror}). Nothing was changed.",
                    code="notifications-file",
                ) from failed
            self.subscriptions = subscriptions

    async def save_record(self) -> None:
        """Write the log of sent messages. Errors: OSError."""
        async with self._lock:
            data = msgspec.json.encode(self.record)
            await asyncio.to_thread(whole_files.write, self._folder / DELIVERY_LOG, data)

    def _read(self, name: str, type_: type[Kept]) -> Kept | None:
        try:
            data = (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None
        return msgspec.json.decode(data, type=type_)
