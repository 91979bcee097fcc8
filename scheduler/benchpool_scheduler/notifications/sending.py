"""Sends a bundle to one address: webhooks by ourselves, everything else by apprise."""

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
"""Mail servers and chats get so long altogether."""

_MODES = {"none": "insecure", "starttls": "starttls", "tls": "ssl"}


class NotificationSender:
    """Sends; what fails is answered in words and never raised.

    Args:
        look_up: Looks up hosts of webhooks.

    Attributes:
        site: What the administrator allows now.
    """

    def __init__(self, site: SiteNotifications, look_up: LookUp = by_system) -> None:
        self.site = site
        self._names = NameLookups(look_up)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="notifications")

    async def send(
        self, address: KeptAddress, bundle: Bundle, now: float, person: str = ""
    ) -> str | None:
        """Return why a bundle did not arrive; None where it was taken.

        Args:
            person: Whose address it is: one name is looked up at a time for each.
        """
        kind = kind_of(address.url)
        if kind == "webhook":
            resolve = partial(self._names.resolve, person)
            return await webhook.post(address, bundle, self.site, now, resolve)
        if kind == "mail" and self.site.mail is None:
            return "This site sends no mail any more."
        url = address.url
        if kind == "mail" and self.site.mail is not None:
            url = mail_url(self.site.mail, url)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(PATIENCE_S):
                taken = await loop.run_in_executor(self._threads, _by_apprise, url, bundle)
        except TimeoutError:
            return f"It took longer than {PATIENCE_S:.0f} s."
        if taken:
            return None
        return "The mail server did not take it." if kind == "mail" else "It was not taken there."

    def close(self) -> None:
        """Send nothing more."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def mail_url(server: MailServer, to: str) -> str:
    """Return a mail address as apprise wants it, with the server's.

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
    """Send by apprise; it tells no more than whether it was taken.

    The address is taken as one: text that holds several, as lists of addresses do, is none.
    """
    from apprise import Apprise, AppriseAsset, NotifyFormat

    asset = AppriseAsset(app_id="benchpool", app_desc="benchpool", app_url="")
    service = Apprise.instantiate(url, asset=asset)
    if service is None:
        return False
    sender = Apprise(asset=asset)
    sender.add(service)
    return bool(sender.notify(bundle.text, title=bundle.subject, body_format=NotifyFormat.TEXT))
