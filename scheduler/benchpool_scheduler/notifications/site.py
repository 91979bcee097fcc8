"""What the administrator allows, and through which mail server: a file of the state folder.

It holds passwords, so it is no part of the configuration, whose versions and changes people read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

FILE = "notifications.yaml"

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


def load(file: Path) -> SiteNotifications:
    """Read the file; without one nothing is sent. Errors: OSError, ValueError.

    ValueError says what is wrong in words.
    """
    try:
        text = file.read_bytes()
    except FileNotFoundError:
        return SiteNotifications()
    try:
        found = msgspec.yaml.decode(text, type=SiteNotifications)
    except msgspec.DecodeError as wrong:
        raise ValueError(f"{file.name}: {str(wrong).rstrip('.')}") from wrong
    if any(one.startswith(("https://", "http://")) for one in found.pool):
        raise ValueError(
            f"{file.name}: `pool` takes mail addresses and schemes of apprise; a webhook is added "
            "on an administrator's page Notifications, with its secret"
        )
    return found
