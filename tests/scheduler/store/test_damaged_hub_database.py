"""A damaged Hub database is replaced by its readable rows, and the damaged file is kept."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from jupyterhub import orm
from sqlalchemy import insert

from benchpool_scheduler.store import hold, hub_database

PAGE = 4096
USERS = 300
TOKEN = "0123456789" * 4


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a Hub database with users, servers and tokens, written by the Hub's own models."""
    database = tmp_path_factory.mktemp("hub") / hub_database.NAME
    session = orm.new_session_factory(f"sqlite:///{database}")()
    session.add(orm.OAuthClient(identifier="jupyterhub"))
    of = range(1, USERS + 1)
    users = [
        {"id": it, "name": f"user-{it:03}", "admin": it == 1, "cookie_id": str(it)} for it in of
    ]
    state = {"pid": 1, "benchpool": {"lease": "k" * 26}}
    servers = [{"user_id": it, "name": "", "state": state} for it in of]
    session.execute(insert(orm.User), users)
    session.execute(insert(orm.Spawner), servers)
    session.commit()
    orm.User.find(session, "user-007").new_api_token(TOKEN, generated=False, roles=[])
    session.commit()
    session.close()
    session.get_bind().dispose()
    return database


@pytest.fixture
def database(whole: Path, tmp_path: Path) -> Path:
    """Return a copy of the Hub database in a state folder."""
    place = hub_database.path_in(tmp_path)
    place.parent.mkdir(parents=True)
    shutil.copyfile(whole, place)
    return place


def users(database: Path) -> dict[str, bool]:
    with sqlite3.connect(database) as db:
        return {name: bool(admin) for name, admin in db.execute("SELECT name, admin FROM users")}


def opens(database: Path) -> None:
    """Open a database as the Hub does at its start."""
    session = orm.new_session_factory(f"sqlite:///{database}")()
    assert all(one.user is not None for one in session.query(orm.Spawner))
    session.close()
    session.get_bind().dispose()


def lose_header(data: bytearray) -> None:
    data[:100] = b"x" * 100


def lose_a_page(data: bytearray) -> None:
    """Overwrite a page with user names, after the pages of the schema."""
    at = data.index(b"user-150") // PAGE * PAGE
    data[at : at + PAGE] = b"\xaa" * PAGE


def test_intact_or_missing_database_is_unchanged(database: Path, tmp_path: Path) -> None:
    before = database.read_bytes()
    assert hub_database.mend(database) is None
    assert database.read_bytes() == before
    assert hub_database.mend(tmp_path / "none.sqlite") is None


@pytest.mark.parametrize(("harm", "least"), [(lose_header, USERS), (lose_a_page, USERS // 2)])
def test_readable_rows_are_recovered_into_new_database(
    database: Path, harm: Callable[[bytearray], None], least: int
) -> None:
    harmed = bytearray(database.read_bytes())
    harm(harmed)
    database.write_bytes(harmed)
    sentence = hub_database.mend(database)
    assert sentence is not None
    assert hold.read(database) == sentence
    found = users(database)
    assert least <= len(found) <= USERS
    assert found["user-001"] is True
    assert f"{len(found)} users" in sentence
    (aside,) = database.parent.glob("*.damaged-*")
    assert aside.read_bytes() == harmed
    assert str(aside) in sentence
    opens(database)
    assert hub_database.mend(database) is None


def test_recovered_token_is_still_valid(database: Path) -> None:
    harmed = bytearray(database.read_bytes())
    lose_header(harmed)
    database.write_bytes(harmed)
    hub_database.mend(database)
    session = orm.new_session_factory(f"sqlite:///{database}")()
    token = orm.APIToken.find(session, TOKEN)
    assert token is not None
    assert token.user.name == "user-007"
    session.close()
    session.get_bind().dispose()


def test_unreadable_database_names_newest_copy(database: Path, tmp_path: Path) -> None:
    copy = tmp_path / "backups" / "2026-11-22T040000.000000Z-daily" / database.name
    copy.parent.mkdir(parents=True)
    shutil.copyfile(database, copy)
    database.write_bytes(b"no database " * 5000)
    sentence = hub_database.mend(database)
    assert sentence is not None
    assert f"cp {copy} {database}" in sentence
    assert "0 users" in sentence
    opens(database)


def test_unreadable_database_without_copy_is_moved_away(database: Path) -> None:
    database.write_bytes(b"no database " * 5000)
    sentence = hub_database.mend(database)
    assert sentence is not None
    assert "Nothing could be read from it" in sentence
    assert not database.exists()
    opens(database)
