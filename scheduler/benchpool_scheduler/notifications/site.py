"""What the administrator allows, and through which mail server: a file of its own.

It holds passwords, so it is no part of the configuration, whose versions and changes people read,
and no error repeats a value of it.
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
    """Through which server mail goes, and to whom.

    Attributes:
        sender: The address that mail comes from.
        domains: Behind the @ of people's addresses; others are refused.
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
    """What a site sends.

    Attributes:
        mail: None for no mail.
        kinds: What people may use besides mail: ``https`` for webhooks, and schemes of apprise.
        hosts: Hosts that webhooks reach although they are in the site's own network, and the only
            ones for schemes of apprise that name a host.
        pool: Addresses that are told what administrators are told.
        bundle_minutes: Least time between two messages to one person; what comes between goes
            together. ``per_hour``: at most so many messages an hour.
    """

    mail: MailServer | None = None
    kinds: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    pool: tuple[str, ...] = ()
    bundle_minutes: Minutes = 10
    per_hour: Count = 12

    @property
    def offered(self) -> tuple[str, ...]:
        """The kinds of addresses that people may use."""
        return (*(() if self.mail is None else ("mail",)), *self.kinds)

    @property
    def sends(self) -> bool:
        """Whether anything is sent at all."""
        return bool(self.offered or self.pool)


def load(file: Path) -> SiteNotifications:
    """Read the file; without one nothing is sent. Errors: InvalidInput with file, line and key."""
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return SiteNotifications()
    except (OSError, UnicodeDecodeError) as failed:
        why = failed.strerror if isinstance(failed, OSError) else "it is no UTF-8 text"
        raise InvalidInput(f"{file} cannot be read ({why}).", code="notifications-file") from failed
    document = compose(text, str(file))
    return SiteNotifications() if document is None else _read(document, text)


def _read(document: Item, text: str) -> SiteNotifications:
    _refuse_unknown(document)
    try:
        found = msgspec.yaml.decode(text, type=SiteNotifications)
    except msgspec.DecodeError as wrong:
        what, _, path = str(wrong).partition(" - at ")
        _at(document, path).wrong(f"is not right: {what[:1].lower()}{what[1:]}.")
    if any(one.startswith(("https://", "http://")) for one in found.pool):
        document.entries()["pool"].wrong(
            "takes mail addresses and schemes of apprise; a webhook is added on an administrator's "
            "page Notifications, with its secret."
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
