"""``benchpool restore`` rejects a copy that is too large or invalid before it replaces files."""

from __future__ import annotations

import gzip
import io
import shutil
import sqlite3
import tarfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from jupyterhub import orm

from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.workstation import admin_token, copy_archive, restoring

MIB = 1024**2
VALID = b"version: 1\nprojects: [{name: vision, quota: 1}]\n"


def pool(folder: Path) -> bytes:
    file = folder / "made.sqlite"
    with sqlite3.connect(file) as db:
        db.execute("PRAGMA user_version = 1")
        db.execute("CREATE TABLE IF NOT EXISTS jobs (id TEXT)")
    db.close()
    return file.read_bytes()


def packed(file: Path, members: Iterable[tuple[str, bytes]]) -> Path:
    with tarfile.open(file, "w:gz" if file.suffix == ".gz" else "w") as tar:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return file


def refused(state: Path, copy: Path | str) -> InvalidInput:
    """Restore a copy that must be rejected, and return the error.

    The state must be unchanged, and the message must not contain a temporary path.
    """
    (state / "scheduler").mkdir(parents=True, exist_ok=True)
    (state / "scheduler" / "pool.sqlite").write_bytes(b"as it was")
    (state / "benchpool.yaml").write_bytes(VALID)
    with pytest.raises(InvalidInput) as error:
        restoring.restore(state, str(copy))
    assert (state / "scheduler" / "pool.sqlite").read_bytes() == b"as it was"
    assert (state / "benchpool.yaml").read_bytes() == VALID
    assert not list(state.glob("tmp*"))
    assert f"{state}/tmp" not in error.value.message
    assert "othing was changed" in error.value.message
    return error.value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"version: [1\n", "line"),
        (b"version: 1\nprojcts: []\n", "projects"),
        (b"\xff\xfe", "not UTF-8 text"),
        (b"", "is empty"),
        (b"[" * 100_000, "benchpool.yaml of"),
    ],
)
@pytest.mark.parametrize("archive", [True, False])
def test_restore_rejects_invalid_configuration(
    tmp_path: Path, text: bytes, why: str, archive: bool
) -> None:
    members = [("pool.sqlite", pool(tmp_path)), ("benchpool.yaml", text)]
    copy = tmp_path / "copy"
    if archive:
        packed(copy, members)
    else:
        copy.mkdir()
        for name, content in members:
            (copy / name).write_bytes(content)
    error = refused(tmp_path / "state", copy)
    assert error.code == "configuration"
    assert f"benchpool.yaml of {copy}" in error.message
    assert why in error.message


def test_restore_names_archive_of_damaged_database(tmp_path: Path) -> None:
    copy = packed(tmp_path / "copy.tar", [("pool.sqlite", b"nothing of the kind")])
    assert f"pool.sqlite of {copy} is damaged" in refused(tmp_path / "state", copy).message


def test_restore_names_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = packed(tmp_path / "copy.tar", [("pool.sqlite", b"nothing of the kind")])
    with copy.open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        message = refused(tmp_path / "state", "-").message
    assert "pool.sqlite of standard input is damaged" in message


def test_restore_limits_unpacked_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copy_archive, "ALWAYS_ALLOWED", 8 * MIB)
    small, large = bytes(7 * MIB), bytes(9 * MIB)
    database = ("pool.sqlite", pool(tmp_path))
    for unknown in ("pool.sqlite", "elsewhere"):
        copy = packed(tmp_path / "large.gz", [(unknown, large)])
        error = refused(tmp_path / "state", copy)
        assert error.code == "copy-too-large"
        assert error.numbers["limit"] == 8 * MIB
        assert "8.0 MiB" in error.message
    fits = packed(tmp_path / "fits.gz", [("elsewhere", small), database])
    assert "pool.sqlite was restored" in restoring.restore(tmp_path / "state", str(fits))[0]


def test_restore_limits_headers_and_members(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = tarfile.TarInfo("pax")
    header.type, header.size = tarfile.XHDTYPE, copy_archive.MOST_HEADER + 1
    copy = tmp_path / "header.gz"
    copy.write_bytes(gzip.compress(header.tobuf() + bytes(header.size)))
    assert refused(tmp_path / "state", copy).numbers["limit"] == copy_archive.MOST_HEADER
    monkeypatch.setattr(copy_archive, "MOST_MEMBERS", 3)
    many = packed(tmp_path / "many.tar", [(f"file-{number}", b"") for number in range(4)])
    assert "more than 3 entries" in refused(tmp_path / "state", many).message


def test_restore_rejects_archive_larger_than_disk(tmp_path: Path) -> None:
    member = tarfile.TarInfo("pool.sqlite")
    member.size = 2**60
    copy = tmp_path / "copy.tar"
    copy.write_bytes(member.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    error = refused(tmp_path / "state", copy)
    assert error.code == "copy-too-large"
    assert "at entry pool.sqlite" in error.message


@pytest.mark.parametrize("kind", ["cut", "damaged", "checksum", "nested"])
def test_restore_rejects_damaged_archive(tmp_path: Path, kind: str) -> None:
    copy = packed(tmp_path / "copy.gz", [("pool.sqlite", pool(tmp_path))])
    whole = copy.read_bytes()
    if kind == "cut":
        copy.write_bytes(whole[: len(whole) // 2])
    elif kind == "damaged":
        copy.write_bytes(whole[:-200] + b"\xff" * 150 + whole[-50:])
    elif kind == "checksum":
        copy.write_bytes(whole[:-8] + b"\0\0\0\0" + whole[-4:])
    else:
        header = tarfile.TarInfo("././@LongLink")
        header.type, header.size = tarfile.GNUTYPE_LONGNAME, 2
        copy.write_bytes(gzip.compress((header.tobuf() + b"a".ljust(512, b"\0")) * 20_000))
    assert f"{copy} cannot be read as a copy" in refused(tmp_path / "state", copy).message


def test_restore_names_revived_tokens(tmp_path: Path) -> None:
    copy, state = tmp_path / "copy", tmp_path / "state"
    copy.mkdir()
    (copy / "pool.sqlite").write_bytes(pool(tmp_path))
    factory = orm.new_session_factory(f"sqlite:///{copy / 'jupyterhub.sqlite'}")
    with factory() as session:
        session.add_all([orm.OAuthClient(identifier="jupyterhub"), orm.User(name="susan")])
        session.commit()
        orm.User.find(session, "susan").new_api_token(note=admin_token.NOTE, roles=[])
    shutil.copytree(copy, state / "hub")
    assert not any("valid" in line for line in restoring.restore(state, str(copy)))
    after = orm.new_session_factory(f"sqlite:///{state / 'hub' / 'jupyterhub.sqlite'}")
    with after() as session:
        session.delete(session.query(orm.APIToken).one())
        session.commit()
    done = "\n".join(restoring.restore(state, str(copy)))
    assert "1 token that had been revoked or had ended since the copy was made" in done
    assert "`benchpool token rotate`" in done
