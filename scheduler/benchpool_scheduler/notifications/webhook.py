"""Webhook delivery: a signed JSON body, with an ID that is the same for each retry."""

from __future__ import annotations

import asyncio
import hmac
from functools import cache
from hashlib import sha256
from ssl import SSLContext
from typing import TYPE_CHECKING

from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.notifications import hosts
from benchpool_scheduler.notifications.addresses import check_webhook_url
from benchpool_scheduler.notifications.bundle import Bundle
from benchpool_scheduler.notifications.delivery_state import KeptAddress
from benchpool_scheduler.notifications.site import SiteNotifications

if TYPE_CHECKING:
    import httpx

TIMEOUT_S = 10.0


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Return the signature for the receiver's check: HMAC-SHA256 of ``timestamp.body``.

    >>> signature("k", "1", b"{}")
    'sha256=3dd49b2593d0f9a349e9e71c4bde3e2b862c2be4003fe9b4ba81332029310158'
    """
    signed = f"{timestamp}.".encode() + body
    return "sha256=" + hmac.new(secret.encode(), signed, sha256).hexdigest()


def headers(secret: str, timestamp: str, bundle: Bundle) -> dict[str, str]:
    """Return the headers of a bundle."""
    return {
        "Content-Type": "application/json",
        "User-Agent": "benchpool",
        "X-Benchpool-Id": bundle.id,
        "X-Benchpool-Timestamp": timestamp,
        "X-Benchpool-Signature": signature(secret, timestamp, bundle.json),
    }


async def post(
    address: KeptAddress,
    bundle: Bundle,
    site: SiteNotifications,
    now: float,
    resolve: hosts.Resolve,
) -> str | None:
    """Send a bundle; return why it was not delivered, or None if it was.

    The host is looked up once, and that address is called. No redirect is followed, and only the
    status of an answer is read.
    """
    import httpx

    try:
        parts = check_webhook_url(address.url, site)
        host = parts.hostname or ""
        async with asyncio.timeout(TIMEOUT_S):
            port = parts.port or (443 if parts.scheme == "https" else 80)
            at = await hosts.address_of(host, port, site.hosts, resolve)
            status = await _status(httpx.URL(address.url), at, address.secret, bundle, now)
    except TimeoutError:
        return f"{host} did not answer within {TIMEOUT_S:.0f} s."
    except (InvalidInput, ValueError, httpx.InvalidURL):
        return "The address is no longer allowed. Add it again."
    except (hosts.UnsafeHost, OSError) as failed:
        return f"{host} was not called: {failed}."
    except httpx.HTTPError:
        return f"{host} cannot be reached, or its certificate is not valid."
    return None if 200 <= status < 300 else f"{host} answered with status {status}."


async def _status(url: httpx.URL, at: str, secret: str, bundle: Bundle, now: float) -> int:
    import httpx

    sent = {**headers(secret, str(int(now)), bundle), "Host": url.netloc.decode("ascii")}
    verify = await asyncio.to_thread(_context)
    async with (
        httpx.AsyncClient(verify=verify, trust_env=False, timeout=TIMEOUT_S) as client,
        client.stream(
            "POST",
            url.copy_with(host=at),
            content=bundle.json,
            headers=sent,
            extensions={"sni_hostname": url.host},
        ) as answer,
    ):
        return answer.status_code


@cache
def _context() -> SSLContext:
    import httpx

    return httpx.create_ssl_context()
