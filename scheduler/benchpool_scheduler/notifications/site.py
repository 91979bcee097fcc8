"""Site settings of notifications and of the mail server, in a separate file.

The file holds passwords. So it is not part of the configuration, whose versions and changes users
can read, and no error repeats a value of it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import yaml
from msgspec import Meta, Struct

from benchpool_scheduler.configuration.nodes import Item, compose
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.store.subscription_files import SITE

FILE = SITE

Minutes = Annotated[int, Meta(ge=1, le=60)]
Count = Annotated[int, Meta(ge=1, le=1000)]


class MailServer(Struct, frozen=True, forbid_unknown_fields=True):
    """Mail server and allowed recipients.

    Attributes:
        sender: Sender address.
        domains: Domains of allowed addresses; others are rejected.
        own: The address of a user, with ``{user}`` for the name in the Hub; empty for unknown.
    """

    host: str
    sender: str
    domains: tuple[str, ...]
    port: Annotated[int, Meta(ge=1, le=65535)] = 25
    security: Literal["none", "starttls", "tls"] = "none"
    user: str = ""
    password: str = ""
    own: str = ""


class SiteNotifications(Struct, frozen=True, forbid_unknown_fields=True):
    """Notification settings of a site.

    Attributes:
        mail: None for no mail.
        kinds: Allowed kinds besides mail: ``https`` for webhooks, and schemes of apprise.
        hosts: Hosts inside the site's own network that webhooks may reach. They are also the only
            hosts that schemes of apprise may name.
        pool: Addresses that get the notifications of administrators.
        bundle_minutes: Minimum time between two messages to one user; events in between are sent
            together. ``per_hour``: maximum messages per hour.
    """

    mail: MailServer | None = None
    kinds: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    pool: tuple[str, ...] = ()
    bundle_minutes: Minutes = 10
    per_hour: Count = 12

    @property
    def offered(self) -> tuple[str, ...]:
        """Kinds of addresses that users may use."""
        return (*(() if self.mail is None else ("mail",)), *self.kinds)

    @property
    def sends(self) -> bool:
        """Whether the site sends notifications."""
        return bool(self.offered or self.pool)


def load(file: Path) -> SiteNotifications:
    """Return the settings of a file; a missing file disables sending.

    Errors: InvalidInput with file, line and key.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return SiteNotifications()
    except (OSError, UnicodeDecodeError) as failed:
        why = failed.strerror if isinstance(failed, OSError) else "not UTF-8 text"
        raise InvalidInput(f"{file} cannot be read ({why}).", code="notifications-file") from failed
    document = compose(text, str(file))
    return SiteNotifications() if document is None else _read(document, text)


def _read(document: Item, text: str) -> SiteNotifications:
    _refuse_unknown(document)
    try:
        found = msgspec.yaml.decode(text, type=SiteNotifications)
    except msgspec.DecodeError as wrong:
        what, _, path = str(wrong).partition(" - at ")
        _at(document, path).wrong(f"is invalid: {what[:1].lower()}{what[1:]}.")
    if any(one.startswith(("https://", "http://")) for one in found.pool):
        document.entries()["pool"].wrong(
            "takes mail addresses and schemes of apprise. Add a webhook with its secret on an "
            "administrator's page Notifications."
        )
    return found


def _refuse_unknown(document: Item) -> None:
    if not isinstance(document.node, yaml.MappingNode):
        document.wrong("must be a mapping of keys to values.")
    mail = document.entries(SiteNotifications.__struct_fields__).get("mail")
    if mail is not None and isinstance(mail.node, yaml.MappingNode):
        mail.entries(MailServer.__struct_fields__)


def _at(document: Item, path: str) -> Item:
    """Return the value at a path of msgspec, such as ``$.mail.port`` or ``$.kinds[0]``."""
    found = document
    for key, number in re.findall(r"\.(\w+)|\[(\d+)\]", path):
        found = found.entries()[key] if key else list(found.items())[int(number)]
    return found
