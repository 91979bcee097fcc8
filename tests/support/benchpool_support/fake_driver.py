"""The driver's library as a shared object, built when it is wanted; a file says what it tells."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pynvml
import pytest

from benchpool_support.nvml import RESERVED_MIB, ScriptedGpu

SOURCES = Path(__file__).with_name("fake_nvml")
NAME = "libnvidia-ml.so.1"
FILE = "fake-nvml.json"


@dataclass(frozen=True)
class FakeDriver:
    """A folder with the library and the file that it answers from."""

    folder: Path

    @property
    def library(self) -> Path:
        """The shared object."""
        return self.folder / NAME

    def tell(self, gpus: Sequence[ScriptedGpu], **facts: Any) -> None:
        """Change what the driver tells, for all who use it, at once."""
        about = {"reserved_mib": RESERVED_MIB, **facts, "gpus": [asdict(gpu) for gpu in gpus]}
        half = self.folder / f"{FILE}.half"
        half.write_text(json.dumps(about))
        os.replace(half, self.folder / FILE)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the binding of this process use it for the duration of a test."""
        monkeypatch.setattr(pynvml, "nvmlLib", ctypes.CDLL(str(self.library)))
        monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})

    def environment(self) -> Mapping[str, str]:
        """Return what lets another process find it."""
        return {"LD_LIBRARY_PATH": str(self.folder)}


def build(folder: Path) -> FakeDriver:
    """Build the library in a folder. Skips the test where there is no gcc."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("gcc is needed to build the driver's library for tests")
    folder.mkdir(parents=True, exist_ok=True)
    command = [gcc, "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC"]
    files = ["-o", str(folder / NAME), str(SOURCES / "nvml.c"), "-ldl", "-lpthread"]
    subprocess.run([*command, *files], check=True)
    return FakeDriver(folder)
