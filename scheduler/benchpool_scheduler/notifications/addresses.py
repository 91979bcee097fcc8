"""Addresses for notifications: which ones a user may use, and how they are shown."""

from __future__ import annotations

import re
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from benchpool_scheduler.contract.notifications import LEAST_SECRET, NewAddress
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.notifications.site import SiteNotifications

MAIL = re.compile(r"[A-Za-z0-9._+-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")

AddressKind = Literal["mail", "webhook", "apprise"]


def kind_of(url: str) -> AddressKind:
    """Return the kind of an address.

    >>> kind_of("susan@example.org"), kind_of("https://example.org/hook"), kind_of("slack://a/b/c")
    ('mail', 'webhook', 'apprise')
    """
    if "://" not in url:
        return "mail"
    return "webhook" if urlsplit(url).scheme in ("https", "http") else "apprise"


def shown(url: str) -> str:
    """Return an address without its possibly secret parts.

    >>> shown("susan@example.org"), shown("https://example.org/hook/7f3a"), shown("slack://a/b/c")
    ('susan@example.org', 'https://example.org/…', 'slack://…')
    """
    match kind_of(url):
        case "mail":
            return url
        case "webhook":
            parts = urlsplit(url)
            return f"{parts.scheme}://{parts.hostname}/…"
    return f"{urlsplit(url).scheme}://…"


def not_set_up(field: str | None = None) -> InvalidInput:
    """Return the error for a site without notifications, with the remedy."""
    return InvalidInput(
        "This site sends no notifications. An administrator sets them up with `notifications.yaml` "
        "in the state folder, or on a cluster with the chart's value `notifications`.",
        code="notifications-off",
        field=field,
    )


def require_set_up(site: SiteNotifications, field: str | None = None) -> None:
    """Raise if the site sends no notifications. Errors: InvalidInput ``notifications-off``."""
    if not site.offered:
        raise not_set_up(field)


def no_longer(url: str, site: SiteNotifications) -> str | None:
    """Return why nothing is sent to an address that was allowed before, or None if it is allowed.

    >>> no_longer("slack://a/b/c", SiteNotifications(kinds=("https",)))
    'This site no longer sends to slack addresses.'
    """
    kind = kind_of(url)
    asked = {"mail": "mail", "webhook": "https"}.get(kind) or urlsplit(url).scheme
    if asked in site.offered:
        return None
    return f"This site no longer sends to {asked} addresses."


def check(asked: NewAddress, site: SiteNotifications) -> None:
    """Reject an address that this site does not send to. Errors: InvalidInput.

    No error repeats the address: it may be secret, and the audit trail keeps refusals.
    """
    require_set_up(site, "add")
    try:
        kind = kind_of(asked.url)
        if kind == "mail":
            _check_mail(asked.url, site)
        elif kind == "webhook":
            _check_webhook(asked, site)
        else:
            _check_apprise(asked.url, site)
    except ValueError as bad:
        raise InvalidInput("This address cannot be read.", field="add") from bad


def _check_mail(url: str, site: SiteNotifications) -> None:
    if site.mail is None:
        raise _other_kind("mail", site)
    if not MAIL.fullmatch(url) or len(url) > 254:
        raise InvalidInput(
            "This is not a mail address. Write it as susan@example.org.",
            code="address",
            field="add",
        )
    domain = url.rpartition("@")[2].lower()
    if domain not in {one.lower() for one in site.mail.domains}:
        raise InvalidInput(
            f"Mail is sent only to addresses at @{', @'.join(site.mail.domains)}.",
            code="address-not-allowed",
            field="add",
        )


def _check_webhook(asked: NewAddress, site: SiteNotifications) -> None:
    if "https" not in site.kinds:
        raise _other_kind("https", site)
    check_webhook_url(asked.url, site)
    if asked.secret is None:
        raise InvalidInput(
            f"A webhook needs a secret of at least {LEAST_SECRET} characters, with which its "
            "messages are signed.",
            code="secret-missing",
            field="secret",
        )


def check_webhook_url(url: str, site: SiteNotifications) -> SplitResult:
    """Return the parts of a webhook's address. Errors: InvalidInput; ValueError for an invalid URL.

    Only hosts that the administrator lists may use plain HTTP or other ports.
    """
    import httpx

    parts = urlsplit(url)
    try:
        httpx.URL(url)  # an address that it cannot parse could be stored but never called
        readable = url.isprintable() and url.split() == [url]
    except httpx.InvalidURL:
        readable = False
    if not readable:
        raise InvalidInput(
            "This address contains spaces or other invalid characters. Copy it again.",
            code="address",
            field="add",
        )
    if not parts.hostname or "@" in parts.netloc:
        raise InvalidInput(
            "A webhook's address is https://HOST/PATH, without a user.", code="address", field="add"
        )
    if (parts.scheme, parts.port or 443) != ("https", 443) and parts.hostname not in site.hosts:
        raise InvalidInput(
            "Webhooks must use https:// and port 443, except for hosts that the administrator "
            "has listed.",
            code="address-not-allowed",
            field="add",
        )
    return parts


def _check_apprise(url: str, site: SiteNotifications) -> None:
    """Reject an unknown scheme, and a host that the administrator has not allowed."""
    scheme = urlsplit(url).scheme
    if scheme not in site.kinds:
        raise _other_kind(scheme, site)
    if "?" in url or url.count("://") != 1 or url.split() != [url]:
        raise InvalidInput(
            "Write one address, without the part from ? on. Options are not accepted.",
            code="address",
            field="add",
        )
    from apprise import Apprise  # many services: the import takes 0.25 s, so only when needed

    service = Apprise.instantiate(url)
    if service is None:
        raise InvalidInput(
            f"This is not a usable {scheme}:// address. See the list of services on "
            "https://appriseit.com.",
            code="address",
            field="add",
        )
    host = urlsplit(url).hostname or ""
    # Some schemes have the host in another field: a value with a dot may be one.
    names_host = "." in host or any("{host}" in str(each) for each in service.templates)
    if names_host and host not in site.hosts:
        raise InvalidInput(
            f"Addresses of {scheme}:// may name only hosts that the administrator has listed.",
            code="address-not-allowed",
            field="add",
        )


def _other_kind(asked: str, site: SiteNotifications) -> InvalidInput:
    return InvalidInput(
        f"This site does not send to {asked} addresses, only to: {', '.join(site.offered)}.",
        code="address-not-allowed",
        field="add",
    )
