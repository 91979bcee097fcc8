"""Sent packages are locked, built and installed alike by uv and by pip."""

from __future__ import annotations

import hashlib
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from benchpool.delta import difference, locking
from benchpool.runner import interpreter, overlay
from benchpool_scheduler.worker.records import WHEELS, WHEELS_VARIABLE

from .conftest import UsersPython

pytestmark = pytest.mark.slow


@pytest.fixture(params=sorted({"pip", "uv"}))
def installer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the only installer that benchpool finds."""
    name: str = request.param
    if name == "uv":
        monkeypatch.setattr(locking, "_has_pip", lambda python: False)
    else:
        for module in (locking, overlay):
            monkeypatch.setattr(module, "uv_beside", lambda python: None)
    return name


@pytest.fixture
def index(users: UsersPython, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Serve the packages in a folder as an index with hashes, which pip's settings name."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(users.index))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield users.index
    server.shutdown()
    thread.join()
    server.server_close()


def listed_in(index: Path) -> None:
    """Write the page of each package (PEP 503)."""
    for wheel in index.glob("*.whl"):
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        page = index / wheel.name.partition("-")[0] / "index.html"
        page.parent.mkdir()
        page.write_text(f'<a href="/{wheel.name}#sha256={digest}">{wheel.name}</a>')


def sent(users: UsersPython, index: Path, folder: Path) -> dict[str, object]:
    """Return the list of packages in the notebook; the wheels are written into the folder."""
    users.publish(users.install("listed", "1.0"))
    listed_in(index)
    users.edit("version = '3.0'\n")
    found = difference.of(users.python, users.unseen)
    assert [(one.name, len(one.sha256)) for one in found.locked] == [("listed", 1)]
    folder.mkdir()
    for name, content in found.wheels.items():
        (folder / name).write_bytes(content)
    listed = dict(difference.notebook_entries(found))["overlay"]
    assert isinstance(listed, dict)
    return listed


def test_sent_packages_are_installed(
    users: UsersPython,
    index: Path,
    tmp_path: Path,
    installer: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listed = sent(users, index, tmp_path / WHEELS)
    monkeypatch.setenv(WHEELS_VARIABLE, str(tmp_path / WHEELS))
    kernel = interpreter.probe(users.python)
    program = "import edited, listed; print(edited.version, listed.version, listed.__file__)"
    with overlay.overlaid(listed, kernel):
        done = subprocess.run(
            [users.python, "-c", program], check=True, capture_output=True, text=True
        )
    *versions, file = done.stdout.split()
    assert versions == ["3.0", "1.0"]
    assert Path(file).is_relative_to(tmp_path / "cache")
    assert {
        each.read_text().strip() for each in Path(file).parent.glob("*.dist-info/INSTALLER")
    } == {installer}


def test_package_with_changed_hash_is_rejected(
    users: UsersPython,
    index: Path,
    tmp_path: Path,
    installer: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listed = sent(users, index, tmp_path / WHEELS)
    monkeypatch.setenv(WHEELS_VARIABLE, str(tmp_path / WHEELS))
    (wheel,) = (tmp_path / WHEELS).iterdir()
    with zipfile.ZipFile(wheel, "a") as changed:
        changed.writestr("more.py", "")
    rejected = pytest.raises(interpreter.CannotStart, match=r"(?i)hash")
    with rejected, overlay.overlaid(listed, interpreter.probe(users.python)):
        raise AssertionError(f"{installer} installed a changed wheel")
