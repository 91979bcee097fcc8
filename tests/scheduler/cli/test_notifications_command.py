"""``benchpool notifications``: the caller's notifications, and a test message."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchpool_scheduler.contract.notifications import NewAddress, NotificationChange
from benchpool_scheduler.service import Caller
from benchpool_support.serving import Served, served
from benchpool_support.webhooks import receiving

from .conftest import Benchpool

pytestmark = pytest.mark.slow


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Served]:
    state = tmp_path / "state"
    state.mkdir()
    site = {"kinds": ["https"], "hosts": ["127.0.0.1"]}
    (state / "notifications.yaml").write_text(json.dumps(site))
    with served(state) as running:
        yield running


def test_test_message_shows_reached_addresses(service: Served, benchpool: Benchpool) -> None:
    assert "Add an address on the page Notifications" in benchpool("notifications").out
    refused = benchpool("notifications", "test")
    assert refused.status == 3
    assert "no address" in refused.err
    with receiving() as receiver:
        new = NotificationChange(add=NewAddress(receiver.url, "a secret that nobody reads"))
        service.do(service.pool.notifier.change(Caller("susan"), new))
        output = benchpool("notifications", "test").out
        assert "http://127.0.0.1/…" in output
        assert "arrived" in output
        assert "A start is reported after 30 min in the queue" in output
        assert len(receiver.came) == 1
    assert "cannot be reached" in benchpool("notifications", "test").out


def test_site_without_notifications_is_reported(service: Served, benchpool: Benchpool) -> None:
    file = service.pool.observed.settings.state / "notifications.yaml"
    file.write_text("kinds: []\n")
    assert benchpool("notifications", "reload").status == 3
    result = benchpool("notifications", "reload", by="root")
    assert "In force now. Users may add addresses of these kinds: none." in result.out
    file.write_text("kinds: no\n")
    wrong = benchpool("notifications", "reload", by="root")
    assert (wrong.status, "line 1: kinds is invalid" in wrong.err) == (2, True)
    assert "This site sends no notifications" in benchpool("notifications").out
    refused = benchpool("notifications", "test")
    assert refused.status == 2
    assert "sets them up with `notifications.yaml`" in refused.err
