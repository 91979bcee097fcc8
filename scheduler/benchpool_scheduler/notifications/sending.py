"""Send a bundle to one address: webhooks directly, everything else by apprise."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from urllib.parse import quote, urlencode

from benchpool_scheduler.notifications import webhook
from benchpool_scheduler.notifications.addresses import kind_of
from benchpool_scheduler.notifications.bundle import Bundle
from benchpool_scheduler.notifications.delivery_state import KeptAddress
from benchpool_scheduler.notifications.name_lookups import LookUp, NameLookups, by_system
from benchpool_scheduler.notifications.site import MailServer, SiteNotifications

THREADS = 4
PATIENCE_S = 45.0
"""Timeout for mail servers and chats, in seconds."""

_MODES = {"none": "insecure", "starttls": "starttls", "tls": "ssl"}


class NotificationSender:
    """Sender that returns failures as text and never raises them.

    Args:
        look_up: Looks up hosts of webhooks.

    Attributes:
        site: The administrator's current settings.
    """

    def __init__(self, site: SiteNotifications, look_up: LookUp = by_system) -> None:
        self.site = site
        self._names = NameLookups(look_up)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="notifications")

    async def send(
        self, address: KeptAddress, bundle: Bundle, now: float, person: str = ""
    ) -> str | None:
        """Return why a bundle was not delivered, or None if it was accepted.

        Args:
            person: Owner of the address; each user has one name lookup at a time.
        """
        kind = kind_of(address.url)
        if kind == "webhook":
            resolve = partial(self._names.resolve, person)
            return await webhook.post(address, bundle, self.site, now, resolve)
        if kind == "mail" and self.site.mail is None:
            return "This site no longer sends mail."
        url = address.url
        if kind == "mail" and self.site.mail is not None:
            url = mail_url(self.site.mail, url)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(PATIENCE_S):
                taken = await loop.run_in_executor(self._threads, _by_apprise, url, bundle)
        except TimeoutError:
            return f"Delivery took longer than {PATIENCE_S:.0f} s."
        if taken:
            return None
        what = "mail server" if kind == "mail" else "service"
        return f"The {what} did not accept the message."

    def close(self) -> None:
        """Stop sending."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def mail_url(server: MailServer, to: str) -> str:
    """Return apprise's URL for a mail address and its server.

    >>> server = MailServer("mx.example.org", "benchpool@example.org", ("example.org",))
    >>> mail_url(server, "susan@example.org").partition("?")[0]
    'mailto://mx.example.org:25'
    """
    login = ""
    if server.user:
        login = f"{quote(server.user, safe='')}:{quote(server.password, safe='')}@"
    options = {
        "smtp": server.host,
        "from": server.sender,
        "to": to,
        "mode": _MODES[server.security],
        "format": "text",
    }
    return f"mailto://{login}{server.host}:{server.port}?{urlencode(options)}"


def _by_apprise(url: str, bundle: Bundle) -> bool:
    """Send by apprise, and return whether the message was accepted.

    The address must be a single one: a text with several addresses is rejected.
    """
    from apprise import Apprise, AppriseAsset, NotifyFormat

    asset = AppriseAsset(app_id="benchpool", app_desc="benchpool", app_url="")
    service = Apprise.instantiate(url, asset=asset)
    if service is None:
        return False
    sender = Apprise(asset=asset)
    sender.add(service)
    return bool(sender.notify(bundle.text, title=bundle.subject, body_format=NotifyFormat.TEXT))
