"""Notification settings of each user: read, change, test."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from secrets import token_hex

from msgspec.structs import replace

from benchpool_scheduler.contract.notifications import (
    NotificationAddress,
    NotificationChange,
    NotificationEvent,
    NotificationSettings,
    SiteKinds,
)
from benchpool_scheduler.errors import Forbidden, InvalidInput, Refused, TooMany
from benchpool_scheduler.notifications import addresses, events, pace
from benchpool_scheduler.notifications.delivery_state import KeptAddress, Subscription
from benchpool_scheduler.notifications.events import Message
from benchpool_scheduler.phrases import count, exactly
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.administration.notification_delivery import NotificationDelivery

MOST_ADDRESSES = 5


class Notifier:
    """Notification settings of users.

    Args:
        delivery: Sends the notifications.
    """

    def __init__(self, delivery: NotificationDelivery) -> None:
        self._delivery = delivery

    def settings(self, caller: Caller) -> NotificationSettings:
        """Return the caller's subscriptions and addresses, without secrets."""
        kept = self._delivery.kept.subscriptions.get(caller.name)
        own = self._subscription(caller, kept if caller.kind == "user" else None)
        return NotificationSettings(
            addresses=[_shown(one) for one in own.addresses],
            events=[one for one in events.offered(admin=caller.admin) if one in own.events],
            wait_s=own.wait_s,
            paused_s=own.paused_s,
            kinds=list(self._delivery.site.offered),
            own=self._own_mail(caller),
            off=None if self._delivery.site.offered else addresses.not_set_up().message,
        )

    async def reload(self, caller: Caller) -> SiteKinds:
        """Read `notifications.yaml` again.

        Errors: Forbidden; InvalidInput, and then the old settings stay.
        """
        rights.require_admin(caller, "read `notifications.yaml` again")
        changed, site = await self._delivery.reload(), self._delivery.site
        return SiteKinds(changed, list(site.offered), len(site.pool))

    async def change(self, caller: Caller, asked: NotificationChange) -> NotificationSettings:
        """Change the caller's own settings. Errors: Forbidden, InvalidInput, Refused,
        Unavailable.
        """
        _require_user(caller)
        if asked.add is not None:  # reads a library of services from disk
            await asyncio.to_thread(addresses.check, asked.add, self._delivery.site)
        await self._delivery.kept.change(
            caller.name, lambda own: self._changed(self._subscription(caller, own), caller, asked)
        )
        self._delivery.subscribed(caller.name)
        return self.settings(caller)

    async def test(self, caller: Caller) -> NotificationSettings:
        """Send a test message once to all addresses of the caller.

        Errors: Forbidden; InvalidInput if the site sends no notifications; Refused without an
        address; TooMany beyond the rate limit for all messages.
        """
        _require_user(caller)
        addresses.require_set_up(self._delivery.site)
        delivery, now = self._delivery, self._delivery.now()
        own = delivery.kept.subscriptions.get(caller.name)
        if own is None or not own.addresses:
            raise Refused(
                "You have no address for messages. Add one on the page Notifications.",
                code="no-address",
            )
        sent, most = pace.kept(delivery.kept.record.sent.get(own.user, ()), now), self._most
        if len(sent) >= most:
            wait_s = max(1, round(sent[-most] + pace.HOUR_S - now))
            raise TooMany(
                f"You were sent {count(len(sent), 'message')} within an hour, which is the limit. "
                f"Try again in {exactly(wait_s)}.",
                code="too-many-notifications",
                numbers={"sent": len(sent), "limit": most},
            )
        delivery.kept.record.sent[own.user] = [*sent, now]
        text = f"This is a test: benchpool notifies {own.user} at this address."
        message = Message(f"test-{token_hex(8)}", NotificationEvent.ENDED, now, text, "mine")
        await delivery.attempt(own.user, own.addresses, delivery.bundle([message]))
        return self.settings(caller)

    @property
    def _most(self) -> int:
        return self._delivery.site.per_hour

    def _subscription(self, caller: Caller, kept: Subscription | None) -> Subscription:
        if kept is not None:
            return kept
        return Subscription(caller.name, self._delivery.now(), events.usual(admin=caller.admin))

    def _changed(
        self, own: Subscription, caller: Caller, asked: NotificationChange
    ) -> Subscription:
        left = tuple(one for one in own.addresses if one.id != asked.remove)
        if asked.remove is not None and len(left) == len(own.addresses):
            raise InvalidInput("You have no address with this id.", field="remove")
        chosen = own.events
        if asked.events is not None:
            offered = events.offered(admin=caller.admin)
            chosen = tuple(one for one in offered if one in asked.events)
        return replace(
            own,
            addresses=_with_new(left, asked),
            since=own.since if own.addresses else self._delivery.now(),
            events=chosen,
            wait_s=own.wait_s if asked.wait_s is None else asked.wait_s,
            paused_s=own.paused_s if asked.paused_s is None else asked.paused_s,
        )

    def _own_mail(self, caller: Caller) -> str | None:
        mail = self._delivery.site.mail
        if mail is None or not mail.own or caller.kind != "user":
            return None
        return mail.own.replace("{user}", caller.name)


def _with_new(there: tuple[KeptAddress, ...], asked: NotificationChange) -> tuple[KeptAddress, ...]:
    """Return the addresses with the added one; a known address gets the new secret."""
    new = asked.add
    if new is None:
        return there
    secret = new.secret or ""
    if any(one.url == new.url for one in there):
        return tuple(replace(it, secret=secret) if it.url == new.url else it for it in there)
    if len(there) >= MOST_ADDRESSES:
        raise Refused(
            f"You have {len(there)} addresses; the limit is {MOST_ADDRESSES}. Remove one first.",
            code="too-many-addresses",
            numbers={"addresses": len(there), "limit": MOST_ADDRESSES},
        )
    return (*there, KeptAddress(token_hex(4), new.url, secret))


def _require_user(caller: Caller) -> None:
    if caller.kind != "user":
        raise Forbidden("Only users are notified; a service follows the events of the API.")


def _shown(one: KeptAddress) -> NotificationAddress:
    reached = None if one.reached is None else datetime.fromtimestamp(one.reached, UTC)
    return NotificationAddress(one.id, addresses.shown(one.url), reached, one.failed)
