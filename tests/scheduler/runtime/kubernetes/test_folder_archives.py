"""Archives of folders that pass through the scheduler: round trip, limits and safety."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from benchpool_scheduler.contract import path_limits
from benchpool_scheduler.runtime.kubernetes.agent import archives

MOST = 1 << 20


def test_packed_folder_is_unpacked_unchanged(tmp_path: Path) -> None:
    source, target, packed = tmp_path / "source", tmp_path / "target", tmp_path / "packed"
    (source / "deep" / "er").mkdir(parents=True)
    (source / "deep" / "er" / "weights").write_bytes(b"1" * 1000)
    (source / "run.sh").write_text("echo")
    (source / "run.sh").chmod(0o755)
    (source / "link").symlink_to("/etc/passwd")
    os.utime(source / "run.sh", (5, 5))
    assert archives.pack(str(source), str(packed), MOST, "checkpoint") > 0
    target.mkdir()
    (target / "run.sh").write_text("older")
    archives.unpack(str(packed), str(target))
    assert (target / "deep" / "er" / "weights").read_bytes() == b"1" * 1000
    assert (target / "run.sh").read_text() == "echo"
    assert (target / "run.sh").stat().st_mtime == 5
    assert os.access(target / "run.sh", os.X_OK)
    assert not (target / "link").exists()


def test_empty_folder_is_not_sent(tmp_path: Path) -> None:
    (tmp_path / "source" / "empty").mkdir(parents=True)
    assert archives.pack(str(tmp_path / "source"), str(tmp_path / "packed"), MOST, "x") == 0


@pytest.mark.parametrize(("count", "length"), [(1, MOST + 1), (1500, 1)])
def test_oversized_folder_is_rejected_with_limit(tmp_path: Path, count: int, length: int) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for number in range(count):
        (source / str(number)).write_bytes(b"x" * length)
    with pytest.raises(archives.TooMuch, match=str(MOST)):
        archives.pack(str(source), str(tmp_path / "packed"), MOST, "checkpoint")


@pytest.mark.parametrize("name", ["../out", "/tmp/out", "a/../../out"])
def test_archive_paths_stay_inside_target(tmp_path: Path, name: str) -> None:
    packed, target = tmp_path / "packed", tmp_path / "in" / "target"
    target.mkdir(parents=True)
    with tarfile.open(packed, "w") as tar:
        one = tarfile.TarInfo(name)
        one.size = 4
        tar.addfile(one, io.BytesIO(b"evil"))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
        tar.addfile(link)
        through = tarfile.TarInfo("link/out")
        through.size = 4
        tar.addfile(through, io.BytesIO(b"evil"))
    archives.unpack(str(packed), str(target))
    assert not list(tmp_path.glob("out"))
    assert not list((tmp_path / "in").glob("out"))
    assert (target / "link").is_dir()
    assert not (target / "link").is_symlink()


@pytest.mark.parametrize("kind", ["compressed", "sparse", "something else"])
def test_invalid_archive_is_rejected_before_unpacking(tmp_path: Path, kind: str) -> None:
    packed, target = tmp_path / "packed", tmp_path / "target"
    target.mkdir()
    sparse = {"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.map": "0,1,1048576,0"}
    one = tarfile.TarInfo("weights")
    if kind == "something else":
        packed.write_bytes(b"x" * 5000)
    else:
        with tarfile.open(packed, "w:gz" if kind == "compressed" else "w") as tar:
            one.size = 1000
            one.pax_headers = sparse if kind == "sparse" else {}
            tar.addfile(one, io.BytesIO(bytes(1000)))
    with pytest.raises(archives.Damaged):
        archives.unpack(str(packed), str(target))
    assert not list(target.iterdir())


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("a/" * 2000 + "weights", "2000 folders deep; the limit is 128"),
        (("b" * 200 + "/") * 12 + "weights", "path of 2419 bytes; the limit is 2048"),
    ],
)
def test_archive_of_deep_folders_is_rejected_before_unpacking(
    tmp_path: Path, name: str, why: str
) -> None:
    packed, target = tmp_path / "packed", tmp_path / "target"
    target.mkdir()
    with tarfile.open(packed, "w") as tar:
        tar.addfile(tarfile.TarInfo("first"))
        tar.addfile(tarfile.TarInfo(name))
    with pytest.raises(archives.Damaged, match=why):
        archives.unpack(str(packed), str(target))
    assert not list(target.iterdir())


def test_archive_of_nested_headers_is_rejected(tmp_path: Path) -> None:
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 2
    packed = tmp_path / "packed"
    packed.write_bytes((header.tobuf() + b"a".ljust(512, b"\0")) * 20_000)
    with pytest.raises(archives.Damaged, match="nested too deep"):
        archives.unpack(str(packed), str(tmp_path))


def test_deep_folder_is_not_packed(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.joinpath(*["folder"] * 200).mkdir(parents=True)
    with pytest.raises(archives.TooMuch, match="129 folders deep; the limit is 128"):
        archives.pack(str(source), str(tmp_path / "packed"), MOST, "checkpoint")
    assert (archives.MOST_DEPTH, archives.MOST_PATH) == (
        path_limits.MOST_DEPTH,
        path_limits.MOST_PATH,
    )
