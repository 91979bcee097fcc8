"""Packages that are missing in the image are sent with a job and installed there."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from benchpool import drafts, import_problems
from benchpool.cells import NotebookCell
from benchpool.delta import difference, packing
from benchpool.drafts import JobOptions
from benchpool.kernel_environment import KernelEnvironment
from benchpool_scheduler.client.imports.unseen import NOTHING as SEES_ALL
from benchpool_scheduler.contract import NotebookEntry
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.worker.records import WHEELS, WHEELS_VARIABLE
from benchpool_support.runner_jobs import NotebookJob

from .conftest import UsersPython

pytestmark = pytest.mark.slow
IMAGE = KernelEnvironment("lab/notebook:1")


def test_index_packages_are_locked_and_local_packages_become_wheels(
    users: UsersPython,
) -> None:
    users.publish(users.install("listed", "1.0"))
    users.install("nowhere", "2.0")
    users.install("cloned", "4.0", source={"url": "https://x.test/r.git", "vcs_info": {}})
    users.edit("version = '3.0'\n")
    found = difference.of(users.python, users.unseen)
    assert [(one.name, one.version, len(one.sha256)) for one in found.locked] == [
        ("listed", "1.0", 1)
    ]
    assert sorted(found.wheels) == [
        "cloned-4.0-py3-none-any.whl",
        "edited-3.0-py3-none-any.whl",
        "nowhere-2.0-py3-none-any.whl",
    ]
    assert found.modules == {"listed", "nowhere", "cloned", "edited"}
    assert found.left == {}
    assert found.names == ["cloned 4.0", "edited 3.0", "listed 1.0", "nowhere 2.0"]
    text = json.dumps(difference.notebook_entries(found))
    assert str(users.index) not in text
    assert "://" not in text


def test_edited_project_is_packed_in_current_state(users: UsersPython) -> None:
    users.edit("version = 'before'\n")
    before = difference.of(users.python, users.unseen).wheels
    assert difference.of(users.python, users.unseen).wheels is before
    users.write("version = 'after'\n")
    (after,) = difference.of(users.python, users.unseen).wheels.values()
    (Path(users.root) / "made.whl").write_bytes(after)
    with zipfile.ZipFile(users.root / "made.whl") as wheel:
        assert wheel.read("edited.py") == b"version = 'after'\n"


def test_packages_visible_to_job_are_not_sent(users: UsersPython) -> None:
    users.began += 10_000
    users.install("late", "1.0")
    assert difference.of(users.python, users.unseen) == difference.NOTHING
    users.began = 1.0
    assert difference.of(users.python, SEES_ALL) == difference.NOTHING


def test_wheel_is_reproducible_and_missing_file_is_named(users: UsersPython) -> None:
    info = users.install("whole", "1.0")
    assert packing.repacked(info) == packing.repacked(info)
    (users.packages / "whole.py").unlink()
    with pytest.raises(packing.CannotBePacked, match=r"whole\.py does not exist"):
        packing.repacked(info)
    found = difference.of(users.python, users.unseen)
    assert found.wheels == {}
    assert "whole.py does not exist" in found.left["whole"]


def test_sent_packages_are_installed_once(users: UsersPython, tmp_path: Path) -> None:
    users.publish(users.install("listed", "1.0"))
    users.edit("version = '3.0'\n")
    found = difference.of(users.python, users.unseen)
    wheels = tmp_path / WHEELS
    wheels.mkdir()
    for name, content in found.wheels.items():
        (wheels / name).write_bytes(content)
    cell = "import listed, edited\nprint(listed.version, edited.version)\nprint(listed.__file__)"
    entries = dict(difference.notebook_entries(found))
    status, log = job(tmp_path / "job", entries, wheels).run(cell, interpreter=users.python)
    assert (status, "1.0 3.0\n" in log) == (0, True)
    assert "benchpool: installing 2 packages sent with the job" in log
    assert str(tmp_path / "cache" / "benchpool" / "overlays") in log
    recorded = json.loads((tmp_path / "job" / "output" / "environment.json").read_text())
    versions = {each["name"]: each["version"] for each in recorded["packages"]}
    assert (versions["listed"], versions["edited"]) == ("1.0", "3.0")
    status, log = job(tmp_path / "next", entries, wheels).run(cell, interpreter=users.python)
    assert (status, "installing" in log) == (0, False)


def test_package_with_changed_hash_is_not_installed(users: UsersPython, tmp_path: Path) -> None:
    info = users.install("listed", "1.0")
    users.publish(info)
    entries = difference.notebook_entries(difference.of(users.python, users.unseen))
    (users.packages / "listed.py").write_text("version = 'forged'\n")
    users.publish(info)
    status, log = job(tmp_path / "job", dict(entries)).run(
        "import listed", interpreter=users.python
    )
    assert status == 2
    assert "the packages sent with the job cannot be installed" in log


def test_sending_reports_packages_and_rejects_unavailable(
    users: UsersPython, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_problems, "unseen_here", lambda environ: users.unseen)
    users.publish(users.install("listed", "1.0"))
    info = users.install("torn", "1.0")
    draft = import_problems.checked(drafted(users, tmp_path, "import listed"), None, IMAGE)
    (problem,) = draft.check().problems
    assert problem.level == "info"
    assert problem.text == (
        "2 packages of this Python that the job image lacks are included: listed 1.0, torn 1.0"
    )
    entry = draft.submission.entry
    assert isinstance(entry, NotebookEntry)
    sent = draft.contents[entry.notebook]
    assert isinstance(sent, bytes)
    overlay = json.loads(sent)["metadata"]["benchpool"]["overlay"]
    assert [each[:2] for each in overlay["locked"]] == [["listed", "1.0"]]
    (wheel,) = draft.submission.files
    assert wheel.path == f"{WHEELS}/torn-1.0-py3-none-any.whl"
    assert wheel.sha256 in draft.contents
    (users.packages / "torn.py").rename(users.root / "home.py")
    (info / "RECORD").write_text("torn/__init__.py,,\n")
    (users.packages / "torn").mkdir()
    (users.packages / "torn" / "__init__.py").write_text("")
    (info / "WHEEL").unlink()
    draft = import_problems.checked(drafted(users, tmp_path, "import torn"), None, IMAGE)
    assert any("`torn` is not included:" in each.text for each in draft.problems)
    with pytest.raises(InvalidInput, match="`torn` was installed after this server started"):
        draft.check()


def job(folder: Path, entries: dict[str, object], wheels: Path | None = None) -> NotebookJob:
    folder.mkdir()
    variables = {} if wheels is None else {WHEELS_VARIABLE: str(wheels)}
    return NotebookJob(folder, entries, variables)


def drafted(users: UsersPython, folder: Path, code: str) -> drafts.Draft:
    return drafts.of_cells(
        [NotebookCell("a", code, selected=True)],
        JobOptions(key="k"),
        kind="cells",
        folder=folder,
        interpreter=users.python,
        here=KernelEnvironment(IMAGE.image),
    )
