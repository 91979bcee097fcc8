"""Subscriptions with their delivery log are part of a backup and of its restore."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchpool_scheduler.contract.notifications import NewAddress, NotificationChange
from benchpool_scheduler.service import Caller
from benchpool_scheduler.store import subscription_files, volume_copies
from benchpool_scheduler.workstation import restoring
from benchpool_support.serving import Served, served

URL, SECRET = "https://hooks.example.com/a/b", "a secret that nobody reads"


def allow(state: Path) -> Path:
    state.mkdir(exist_ok=True)
    (state / "notifications.yaml").write_text("kinds: [https]\n")
    return state


def subscribe(service: Served, user: str) -> None:
    change = NotificationChange(add=NewAddress(URL, SECRET), wait_s=77)
    service.do(service.pool.notifier.change(Caller(user), change))


def subscriptions(state: Path, *users: str) -> dict[str, tuple[str, int]]:
    with served(allow(state)) as service:
        kept = service.pool.deliveries.kept.subscriptions
        return {user: (kept[user].addresses[0].secret, kept[user].wait_s) for user in users}


def test_subscriptions_are_restored_and_newer_entries_kept(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    copy, packed = tmp_path / "copy", tmp_path / "copy.tar"
    with served(allow(tmp_path / "state")) as service:
        subscribe(service, "joe")
        with service.client("root") as root:
            restoring.take(root.backup(), str(copy))
            restoring.take(root.backup(), "-")
    packed.write_bytes(capsysbinary.readouterr().out)
    for source in (copy, packed):
        state = tmp_path / f"from-{source.name}"
        done = restoring.restore(state, str(source))
        assert any(line.startswith("Notification settings of 1 user restored") for line in done)
        file = state / "scheduler" / subscription_files.SUBSCRIPTIONS
        assert file.stat().st_mode & 0o077 == 0
        site = state / subscription_files.SITE
        assert site.read_text() == "kinds: [https]\n"
        assert site.stat().st_mode & 0o077 == 0
        assert subscriptions(state, "joe") == {"joe": (SECRET, 77)}
        kept = json.loads(file.read_text())
        file.write_text(json.dumps([{**kept[0], "wait_s": 5}]))
        site.write_text("kinds: [https, slack]\n")
        again = restoring.restore(state, str(source))
        assert site.read_text() == "kinds: [https, slack]\n", "what is in force was replaced"
        assert not any("Notification" in line or str(site) in line for line in again)
        assert subscriptions(state, "joe") == {"joe": (SECRET, 5)}


def test_volume_subscriptions_are_restored_with_delivery_log(tmp_path: Path) -> None:
    with served(allow(tmp_path / "volume")) as service:
        subscribe(service, "joe")
    record = tmp_path / "volume" / "scheduler" / subscription_files.DELIVERY_LOG
    record.write_text('{"told": {"joe": {"a-failed": 5.0}}}')
    copies = volume_copies.VolumeCopies(tmp_path / "copies", 3)
    volume_copies.copy_pool(tmp_path / "volume", copies)
    newest = copies.newest()
    assert newest is not None
    lost = tmp_path / "lost"
    (restored, *_) = volume_copies.restore_pool(lost, newest)
    assert "notification settings of 1 user." in restored
    assert (lost / "scheduler" / subscription_files.DELIVERY_LOG).read_text() == record.read_text()
    assert subscriptions(lost, "joe") == {"joe": (SECRET, 77)}
    (again, *_) = volume_copies.restore_pool(lost, newest)
    assert "notification settings of 0 users." in again
