"""Python of a user with packages that are missing in its image, and a folder as package index."""

from __future__ import annotations

import json
import os
import sysconfig
import time
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchpool.delta import packing
from benchpool_scheduler.client.imports.unseen import Unseen

BACKEND = """\
import zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    name, info = "edited-3.0-py3-none-any.whl", "edited-3.0.dist-info"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        wheel.write("edited.py")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: edited\\nVersion: 3.0\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", "")
    return name
"""
PROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "edited"
version = "3.0"
"""


@dataclass
class UsersPython:
    """Python environment of a user; ``began`` is the start time of its container."""

    root: Path
    began: float

    @property
    def python(self) -> str:
        return str(self.root / "env" / "bin" / "python")

    @property
    def packages(self) -> Path:
        return Path(sysconfig.get_path("purelib", "venv", {"base": str(self.root / "env")}))

    @property
    def index(self) -> Path:
        return self.root / "index"

    @property
    def unseen(self) -> Unseen:
        return Unseen(str(self.root / "home"), False, self.began)

    def install(self, name: str, version: str, *, source: object = None) -> Path:
        """Install a distribution of one module as an installer does, and return its metadata
        folder.
        """
        info = self.packages / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "WHEEL").write_text("Wheel-Version: 1.0\nTag: py3-none-any\n")
        (info / "INSTALLER").write_text("pip\n")
        (self.packages / f"{name}.py").write_text(f"version = {version!r}\n")
        names = [f"{name}.py", f"../../../bin/{name}", f"__pycache__/{name}.cpython-311.pyc"]
        names += [f"{info.name}/{each}" for each in ("METADATA", "WHEEL", "INSTALLER", "RECORD")]
        (info / "RECORD").write_text("".join(f"{each},,\n" for each in names))
        if source is not None:
            (info / "direct_url.json").write_text(json.dumps(source))
        return info

    def publish(self, metadata: Path) -> None:
        """Add an installed distribution to the index."""
        name, content = packing.repacked(metadata)
        (self.index / name).write_bytes(content)

    @property
    def project(self) -> Path:
        """Folder of the user's own project."""
        return self.root / "project"

    def write(self, text: str) -> None:
        """Write the module of the project."""
        (self.project / "edited.py").write_text(text)

    def edit(self, text: str) -> Path:
        """Install the project as editable; it has its own build backend and no dependencies."""
        project = self.project
        project.mkdir(exist_ok=True)
        self.write(text)
        (project / "backend.py").write_text(BACKEND)
        (project / "pyproject.toml").write_text(PROJECT)
        source = {"url": project.as_uri(), "dir_info": {"editable": True}}
        return self.install("edited", "3.0", source=source)


@pytest.fixture
def users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> UsersPython:
    venv.create(tmp_path / "env", symlinks=True, with_pip=False)
    one = UsersPython(tmp_path, time.time() + 1000)
    one.index.mkdir()
    # The image provides kernel and installer from the environment of these tests.
    (one.packages / "image.pth").write_text(sysconfig.get_path("purelib"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(one.index))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in [each for each in os.environ if each.startswith(("UV_", "PIP_CONFIG"))]:
        monkeypatch.delenv(name)
    one.began = time.time() - 0.05
    return one
