"""Tokens, users and administrators that a restored Hub database adds or removes."""

from __future__ import annotations

import shutil
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from jupyterhub import orm

from benchpool_scheduler.store import copies, hub_tokens, volume_copies

DAY = timedelta(days=1)


def changed(database: Path, change: Any) -> Path:
    """Apply a change to a Hub database in its own session; create the database if it is missing."""
    factory = orm.new_session_factory(f"sqlite:///{database}")
    with factory() as session:
        change(session)
        session.commit()
        factory.kw["bind"].dispose()
    return database


def with_users(session: Any) -> None:
    session.add(orm.OAuthClient(identifier="jupyterhub"))
    session.add(orm.User(name="susan", admin=True))
    session.add(orm.User(name="joe"))
    session.commit()
    for name, note in (("susan", "laptop"), ("joe", "stays"), ("joe", "ended")):
        user = orm.User.find(session, name)
        user.new_api_token(note=note, roles=[])
    token = next(iter(session.query(orm.APIToken).filter_by(note="ended")))
    token.expires_at = datetime.now(UTC).replace(tzinfo=None) - DAY


def revoked(session: Any) -> None:
    session.delete(next(iter(session.query(orm.APIToken).filter_by(note="laptop"))))
    session.add(orm.User(name="amy"))
    orm.User.find(session, "joe").new_api_token(note="newer\u202e", roles=[])
    orm.User.find(session, "susan").admin = False


def differences(replaced: Path, copy: Path) -> str:
    now = time.time()
    return "\n".join(
        hub_tokens.sentences(hub_tokens.read(replaced, now), hub_tokens.read(copy, now))
    )


def test_restored_database_lists_revalidated_tokens(tmp_path: Path) -> None:
    copy = changed(tmp_path / "copy.sqlite", with_users)
    replaced = tmp_path / "now.sqlite"
    shutil.copyfile(copy, replaced)
    assert differences(replaced, copy) == ""
    changed(replaced, revoked)
    text = differences(replaced, copy)
    assert "1 token that had been revoked" in text
    assert 'a1 of susan ("laptop"' in text
    assert "/hub/token" in text
    assert "stays" not in text
    assert "1 token made since the copy was made is no longer valid" in text
    assert 'of joe ("newer\\u202e"' in text
    assert "1 user without administrator rights until now is in that role again: susan." in text
    changed(replaced, lambda session: session.delete(orm.User.find(session, "susan")))
    assert "1 user removed since the copy was made is in the Hub again: susan." in differences(
        replaced, copy
    )


@pytest.mark.parametrize("content", [None, b"no database" * 100])
def test_restored_database_without_replaced_one_lists_all_tokens(
    tmp_path: Path, content: bytes | None
) -> None:
    copy = changed(tmp_path / "copy.sqlite", with_users)
    lost = tmp_path / "lost.sqlite"
    if content is not None:
        lost.write_bytes(content)
    text = differences(lost, copy)
    assert "It is unknown which tokens were revoked since the copy was made" in text
    assert "2 tokens of the copy are valid" in text
    assert "ended" not in text.replace("had ended", "")


def test_restored_volume_lists_revalidated_tokens(tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    database = changed(volume / volume_copies.HUB_DATABASE, with_users)
    kept = volume_copies.VolumeCopies(tmp_path / "copies")
    volume_copies.copy_hub(volume, kept)
    changed(database, revoked)
    copy = copies.newest(kept.folder, volume_copies.KIND)
    assert copy is not None
    first, *rest = volume_copies.restore_hub(volume, copy)
    assert "was restored" in first
    assert "1 token that had been revoked" in rest[0]
