"""The reader's notifications: addresses, events, and a test message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchpool_scheduler.api import audit
from benchpool_scheduler.contract import durations
from benchpool_scheduler.contract.notifications import (
    LEAST_SECRET,
    MOST_S,
    NewAddress,
    NotificationAddress,
    NotificationChange,
    NotificationEvent,
    NotificationSettings,
)
from benchpool_scheduler.contract.operation import Operation
from benchpool_scheduler.contract.operations import Operations
from benchpool_scheduler.errors import BenchpoolError, InvalidInput
from benchpool_scheduler.notifications.events import EVENTS, offered
from benchpool_scheduler.service import Caller
from benchpool_scheduler.web.pages import FormHandler, PageHandler
from benchpool_scheduler.web.words import Moment, moment

NOTIFICATION_ACTS: Mapping[str, Operation[Any]] = {
    "add": Operations.change_notifications,
    "remove": Operations.change_notifications,
    "choose": Operations.change_notifications,
    "test": Operations.test_notifications,
}
"""Operations of the page, by their word in addresses."""

DONE: Mapping[str, str] = {
    "add": "The address is saved. Send a test to check that messages arrive.",
    "remove": "The address is removed.",
    "choose": "From now on you are notified of the selected events.",
    "test": "A test was sent. The column Newest message shows whether it arrived.",
}


@dataclass(frozen=True, slots=True)
class AddressRow:
    """One address as the page shows it."""

    address: NotificationAddress
    reached: Moment | None


class _NotificationsPage(PageHandler):
    async def show_settings(self, caller: Caller, *, message: str = "", wrong: str = "") -> None:
        """Render the page; ``message`` is a success message, ``wrong`` an error message."""
        found, now = self.site.pool.notifier.settings(caller), self.site.now()
        await self.show(
            "notifications.html",
            self.facts(back="notifications"),
            found=found,
            rows=[
                AddressRow(one, None if one.reached is None else moment(one.reached, now))
                for one in found.addresses
            ],
            choices=[
                (one.value, EVENTS[one].words, one in found.events)
                for one in offered(admin=caller.admin)
            ],
            waits=(durations.written(found.wait_s), durations.written(found.paused_s)),
            takes=_takes(found),
            least_secret=LEAST_SECRET,
            message=message,
            wrong=wrong,
        )


class NotificationsHandler(_NotificationsPage):
    """``GET <prefix>notifications``."""

    async def get(self) -> None:
        """Show the page."""
        caller = await self.reader()
        await self.show_settings(caller, message=DONE.get(self.get_query_argument("done", ""), ""))


class NotificationActHandler(FormHandler, _NotificationsPage):
    """``POST <prefix>notifications/<act>`` with the page's XSRF token."""

    PAGE = "notifications"

    async def post(self, act: str) -> None:
        """Run the action, then redirect; show errors on the page."""
        caller = await self.reader()
        self.refuse_forged()
        pool, operation = self.site.pool, NOTIFICATION_ACTS[act]
        body: NotificationChange | None = None
        try:
            if act == "test":
                after = await pool.notifier.test(caller)
            else:
                body = self._change(act)
                after = await pool.notifier.change(caller, body)
        except BenchpoolError as refused:
            audit.note(pool, operation, caller, self, refused)
            self.set_status(refused.http_status)
            await self.show_settings(caller, wrong=refused.message)
            return
        await pool.audit.record(audit.done(operation, caller, self.request, {}, body, after, None))
        self.redirect(f"{self.site.root}notifications?done={act}", status=303)

    def _change(self, act: str) -> NotificationChange:
        match act:
            case "add":
                return NotificationChange(add=self._new_address())
            case "remove":
                return NotificationChange(remove=self._field("id"))
        chosen = self.get_body_arguments("event")
        return NotificationChange(
            events=[one for one in NotificationEvent if one.value in chosen],
            wait_s=durations.read(self._field("wait"), "A long wait", "wait_s", 0, MOST_S),
            paused_s=durations.read(self._field("paused"), "A long pause", "paused_s", 60, MOST_S),
        )

    def _new_address(self) -> NewAddress:
        url, secret = self._field("url"), self.get_body_argument("secret", "").strip()
        if not 3 <= len(url) <= 1000:
            raise InvalidInput(
                f"The address has {len(url)} characters. Allowed: 3 to 1000.", field="add"
            )
        if secret and not LEAST_SECRET <= len(secret) <= 200:
            raise InvalidInput(
                f"The secret has {len(secret)} characters. Allowed: {LEAST_SECRET} to 200.",
                field="secret",
            )
        return NewAddress(url, secret or None)

    def _field(self, name: str) -> str:
        return " ".join(self.get_body_argument(name, "").split())


def _takes(found: NotificationSettings) -> str:
    """Return the address types that the site allows, in words."""
    words = {"mail": "a mail address", "https": "an https:// address for webhooks"}
    return ", ".join(words.get(one, f"{one}://…") for one in found.kinds)
