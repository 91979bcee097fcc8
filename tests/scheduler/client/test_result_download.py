"""Results that a job has sent are fetched into the folder that it could not write."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchpool_scheduler import cli
from benchpool_scheduler.client import AsyncClient, results
from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_scheduler.errors import InvalidInput, NotFound
from benchpool_support.scripted import ScriptedRuntime, devices
from benchpool_support.serving import Served, served

pytestmark = pytest.mark.slow

LARGE = bytes(range(256)) * 60_000  # more than one part


@pytest.fixture
def runtime() -> ScriptedRuntime:
    return ScriptedRuntime(devices(5))


@pytest.fixture
def service(tmp_path: Path, runtime: ScriptedRuntime) -> Iterator[Served]:
    with served(tmp_path / "state", runtime=runtime, keep_jobs=True) as running:
        yield running


def packed(path: Path, files: dict[str, bytes], link: str = "") -> Path:
    with tarfile.open(path, "w") as archive:
        for name, data in files.items():
            about = tarfile.TarInfo(name)
            about.size = len(data)
            archive.addfile(about, io.BytesIO(data))
        if link:
            about = tarfile.TarInfo("link")
            about.type, about.linkname = tarfile.SYMTYPE, link
            archive.addfile(about)
    return path


@pytest.fixture
def job(service: Served) -> str:
    with service.client("susan") as susan:
        return susan.submit(JobSubmission(entry=CommandEntry(["true"]), workers=2)).id


async def test_results_of_all_workers_are_merged_in_one_folder(
    service: Served, runtime: ScriptedRuntime, job: str, tmp_path: Path
) -> None:
    runtime.packed[job, 0] = packed(tmp_path / "0.tar", {"model.bin": LARGE, "log/a.txt": b"a"})
    runtime.packed[job, 1] = packed(tmp_path / "1.tar", {"log/b.txt": b"b"}, link="/etc/passwd")
    with service.client("susan") as susan:
        found = results.fetch(susan, job, tmp_path / "here", workers=2)
    assert found == ["log/a.txt", "log/b.txt", "model.bin"]
    assert (tmp_path / "here/model.bin").read_bytes() == LARGE
    assert not (tmp_path / "here/link").exists()
    async with AsyncClient(service.credentials("susan")) as susan:
        again = await results.fetch_async(susan, job, tmp_path / "there", workers=2)
    assert again == found


def test_missing_results_create_no_folder(service: Served, job: str, tmp_path: Path) -> None:
    with service.client("susan") as susan:
        assert results.fetch(susan, job, tmp_path / "here") == []
    assert not (tmp_path / "here").exists()


@pytest.mark.parametrize("name", ["../out.txt", "{folder}/out.txt", "away/out.txt"])
def test_path_outside_folder_is_rejected_before_writing(
    service: Served, runtime: ScriptedRuntime, job: str, tmp_path: Path, name: str
) -> None:
    here, elsewhere = tmp_path / "a" / "here", tmp_path / "elsewhere"
    here.mkdir(parents=True)
    elsewhere.mkdir()
    (here / "away").symlink_to(elsewhere)
    path = name.format(folder=elsewhere)
    runtime.packed[job, 0] = packed(tmp_path / "0.tar", {"first.txt": b"1", path: b"x"})
    with (
        service.client("susan") as susan,
        pytest.raises(InvalidInput, match="outside of their folder"),
    ):
        results.fetch(susan, job, here)
    assert [each.name for each in here.iterdir()] == ["away"]
    assert not (tmp_path / "a" / "out.txt").exists()
    assert not list(elsewhere.iterdir())


def bomb() -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as archive:
        about = tarfile.TarInfo("zeros")
        about.size = 1 << 24
        archive.addfile(about, io.BytesIO(bytes(1 << 24)))
    return raw.getvalue()


def header(**facts: Any) -> bytes:
    about = tarfile.TarInfo("first.txt")
    for name, value in facts.items():
        setattr(about, name, value)
    return about.tobuf(format=tarfile.PAX_FORMAT) + bytes(2 * tarfile.RECORDSIZE)


def nested() -> bytes:
    """Return headers of long names, nested in each other."""
    about = tarfile.TarInfo("././@LongLink")
    about.type, about.size = tarfile.GNUTYPE_LONGNAME, 2
    return (about.tobuf() + b"a".ljust(512, b"\0")) * 20_000


SPARSE = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "1099511627776"}


@pytest.mark.parametrize(
    ("archive", "message"),
    [
        pytest.param(bomb(), "cannot be unpacked", id="compressed"),
        pytest.param(b"no archive at all" * 100, "cannot be unpacked", id="something else"),
        pytest.param(header(pax_headers=SPARSE), "cannot be unpacked|would take", id="sparse"),
        pytest.param(header(size=1 << 40), "cannot be unpacked|would take", id="cut off"),
        pytest.param(header(size=-512), "cannot be unpacked|would take", id="less than nothing"),
        pytest.param(header(mtime=1 << 70), "cannot be unpacked", id="no time"),
        pytest.param(header(name="a/" * 5000), "4999 folders deep", id="deep folder"),
        pytest.param(header(name="a/" * 2000 + "b"), "2000 folders deep; 128 are", id="deep file"),
        pytest.param(header(name="b" * 3000), "name of 3000 bytes", id="long name"),
        pytest.param(nested(), "headers nested too deep", id="nested headers"),
    ],
)
def test_broken_archive_is_reported_and_leaves_no_files(
    service: Served,
    runtime: ScriptedRuntime,
    job: str,
    tmp_path: Path,
    archive: bytes,
    message: str,
) -> None:
    sent = tmp_path / "0.tar"
    sent.write_bytes(archive)
    runtime.packed[job, 0] = sent
    with service.client("susan") as susan, pytest.raises(InvalidInput, match=message):
        results.fetch(susan, job, tmp_path / "here")
    laid = [file.stat().st_size for file in (tmp_path / "here").rglob("*") if file.is_file()]
    assert sum(laid) < len(archive) + 1


def test_extraction_works_without_extractall(
    service: Served,
    runtime: ScriptedRuntime,
    job: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Debian 12 has Python 3.11.2; extraction filters came with 3.11.4.
    monkeypatch.delattr(tarfile.TarFile, "extractall")
    runtime.packed[job, 0] = packed(tmp_path / "0.tar", {"deep/a": b"x"})
    with service.client("susan") as susan:
        assert results.fetch(susan, job, tmp_path / "here") == ["deep/a"]
    assert (tmp_path / "here/deep/a").read_bytes() == b"x"


def test_results_are_hidden_from_other_users(
    service: Served, runtime: ScriptedRuntime, job: str, tmp_path: Path
) -> None:
    runtime.packed[job, 0] = packed(tmp_path / "0.tar", {"a": b"x"})
    with service.client("joe") as joe, pytest.raises(NotFound):
        results.fetch(joe, job, tmp_path / "here")


@pytest.mark.parametrize("still_there", [True, False])
def test_terminal_fetches_into_folder_given_at_submit(
    service: Served, runtime: ScriptedRuntime, tmp_path: Path, still_there: bool
) -> None:
    sent_from, here = tmp_path / "sent-from", tmp_path / "here"
    here.mkdir()
    if still_there:
        sent_from.mkdir()
    named = sent_from / results.RESULTS / "train-1f2e3d4c"
    with service.client("susan") as susan:
        sent = JobSubmission(entry=CommandEntry(["true"]), output_dir=str(named))
        job = susan.submit(sent).id
    runtime.packed[job, 0] = packed(tmp_path / "0.tar", {"model.bin": b"weights"})
    environ = {"BENCHPOOL_URL": service.url, "BENCHPOOL_TOKEN": "susan"}
    assert cli.run(["results", job], environ, here) == 0
    folder = named if still_there else here / results.RESULTS / named.name
    assert (folder / "model.bin").read_bytes() == b"weights"
