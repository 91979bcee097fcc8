"""Real deliveries to a webhook receiver and to a mail server."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import AsyncIterator, Collection
from email import message_from_bytes
from email.message import Message as Mail
from hashlib import sha256
from typing import Any

import pytest_asyncio
from aiosmtpd.smtp import SMTP, Envelope, Session

from benchpool_scheduler.contract.notifications import NotificationEvent
from benchpool_scheduler.notifications.bundle import bundled
from benchpool_scheduler.notifications.delivery_state import KeptAddress
from benchpool_scheduler.notifications.events import Message
from benchpool_scheduler.notifications.sending import NotificationSender
from benchpool_scheduler.notifications.site import MailServer, SiteNotifications
from benchpool_support.webhooks import receiving

SECRET = "0123456789abcdef"
BUNDLE = bundled(
    [Message("j-failed", NotificationEvent.FAILED, 60.0, "Job train failed: 3 < 4 & 5.", "jobs/j")],
    "https://hub.example.org/services/benchpool",
)
NAMED = SiteNotifications(kinds=("https",), hosts=("127.0.0.1",))


async def test_webhook_is_signed_and_retry_keeps_id() -> None:
    sender = NotificationSender(NAMED)
    with receiving() as receiver:
        to = KeptAddress("a", receiver.url, SECRET)
        assert await sender.send(to, BUNDLE, 1000.0) is None
        assert await sender.send(to, BUNDLE, 2000.0) is None
    first, second = receiver.came
    for one in (first, second):
        signed = one.headers["X-Benchpool-Timestamp"].encode() + b"." + one.body
        expected = hmac.new(SECRET.encode(), signed, sha256).hexdigest()
        assert one.headers["X-Benchpool-Signature"] == f"sha256={expected}"
    assert first.headers["X-Benchpool-Id"] == second.headers["X-Benchpool-Id"]
    assert first.headers["X-Benchpool-Signature"] != second.headers["X-Benchpool-Signature"]
    (message,) = json.loads(first.body)["messages"]
    assert message == {
        "id": "j-failed",
        "event": "failed",
        "at": "1970-01-01T00:01:00Z",
        "text": "Job train failed: 3 < 4 & 5.",
        "url": "https://hub.example.org/services/benchpool/jobs/j",
    }


async def test_refusals_are_reported_and_redirects_not_followed() -> None:
    sender = NotificationSender(NAMED)
    with receiving() as receiver:
        receiver.statuses += [302, 500]
        to = KeptAddress("a", receiver.url, SECRET)
        assert await sender.send(to, BUNDLE, 1.0) == "127.0.0.1 answered with status 302."
        assert await sender.send(to, BUNDLE, 1.0) == "127.0.0.1 answered with status 500."
        assert len(receiver.came) == 2
    gone = await sender.send(to, BUNDLE, 1.0)
    assert gone == "127.0.0.1 cannot be reached, or its certificate is not valid."


async def test_site_host_is_called_only_if_listed() -> None:
    with receiving() as receiver:
        port = receiver.url.rpartition(":")[2]

        def look_up(host: str, port: int) -> Collection[str]:
            return ["127.0.0.1"]

        strict = NotificationSender(SiteNotifications(kinds=("https",)), look_up)
        hidden = KeptAddress("a", "https://rebinds.example.com/hook", SECRET)
        problem = await strict.send(hidden, BUNDLE, 1.0)
        assert problem is not None
        assert "the administrator has not listed it" in problem
        lenient = NotificationSender(
            SiteNotifications(kinds=("https",), hosts=("rebinds.example.com",)), look_up
        )
        named = KeptAddress("a", f"http://rebinds.example.com:{port}", SECRET)
        assert await lenient.send(named, BUNDLE, 1.0) is None
    (one,) = receiver.came
    assert one.headers["Host"].startswith("rebinds.example.com:")


class Inbox:
    """Handler that stores received mail."""

    def __init__(self) -> None:
        self.mails: list[tuple[list[str], Mail]] = []

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        content: Any = envelope.content
        self.mails.append((envelope.rcpt_tos, message_from_bytes(content)))
        return "250 OK"


@pytest_asyncio.fixture
async def server() -> AsyncIterator[tuple[Inbox, MailServer]]:
    inbox = Inbox()
    listening = await asyncio.get_running_loop().create_server(
        lambda: SMTP(inbox, hostname="mx.example.org"), "127.0.0.1", 0
    )
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        domains = ("example.org",)
        yield inbox, MailServer("127.0.0.1", "benchpool@example.org", domains, port=port)


async def test_mail_is_sent_as_plain_text(server: tuple[Inbox, MailServer]) -> None:
    inbox, mail = server
    sender = NotificationSender(SiteNotifications(mail=mail))
    assert await sender.send(KeptAddress("a", "susan@example.org"), BUNDLE, 1.0) is None
    ((to, got),) = inbox.mails
    assert to == ["susan@example.org"]
    assert got["Subject"] == "benchpool: Job train failed: 3 < 4 & 5."
    assert "benchpool@example.org" in got["From"]
    assert got.get_content_type() == "text/plain"
    body = got.get_payload(decode=True)
    assert isinstance(body, bytes)
    assert body.decode().strip() == BUNDLE.text


async def test_unreachable_mail_server_is_reported() -> None:
    mail = MailServer("127.0.0.1", "benchpool@example.org", ("example.org",), port=9)
    sender = NotificationSender(SiteNotifications(mail=mail))
    problem = await sender.send(KeptAddress("a", "susan@example.org"), BUNDLE, 1.0)
    assert problem == "The mail server did not accept the message."
