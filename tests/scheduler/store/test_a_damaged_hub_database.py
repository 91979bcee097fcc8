"""What can be read of a damaged database of the Hub takes its place; the damaged one is kept."""

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
    """Write a database of the Hub with people, servers and tokens, as the Hub itself does."""
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
    """A copy of it in a state folder."""
    place = hub_database.path_in(tmp_path)
    place.parent.mkdir(parents=True)
    shutil.copyfile(whole, place)
    return place


def users(database: Path) -> dict[str, bool]:
    with sqlite3.connect(database) as db:
        return {name: bool(admin) for name, admin in db.execute("SELECT name, admin FROM users")}


def opens(database: Path) -> None:
    """Open it as the Hub does when it starts."""
    session = orm.new_session_factory(f"sqlite:///{database}")()
    assert all(one.user is not None for one in session.query(orm.Spawner))
    session.close()
    session.get_bind().dispose()


def lose_header(data: bytearray) -> None:
    data[:100] = b"x" * 100


def lose_a_page(data: bytearray) -> None:
    """Lose the first page that has names of people, beyond the tables' making."""
    at = data.index(b"user-150") // PAGE * PAGE
    data[at : at + PAGE] = b"\xaa" * PAGE


def test_a_whole_or_missing_database_is_left_alone(database: Path, tmp_path: Path) -> None:
    before = database.read_bytes()
    assert hub_database.mend(database) is None
    assert database.read_bytes() == before
    assert hub_database.mend(tmp_path / "none.sqlite") is None


@pytest.mark.parametrize(("harm", "least"), [(lose_header, USERS), (lose_a_page, USERS // 2)])
def test_what_can_be_read_takes_its_place(
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


def test_a_token_that_could_be_read_still_opens_the_door(database: Path) -> None:
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


def test_of_noise_nothing_is_read_and_the_newest_copy_is_named(
    database: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "backups" / "2026-11-22T040000.000000Z-daily" / database.name
    copy.parent.mkdir(parents=True)
    shutil.copyfile(database, copy)
    database.write_bytes(b"no database " * 5000)
    sentence = hub_database.mend(database)
    assert sentence is not None
    assert f"cp {copy} {database}" in sentence
    assert "0 users" in sentence
    opens(database)


def test_without_tables_or_a_copy_the_hub_begins_anew(database: Path) -> None:
    database.write_bytes(b"no database " * 5000)
    sentence = hub_database.mend(database)
    assert sentence is not None
    assert "Nothing of it could be read" in sentence
    assert not database.exists()
    opens(database)
