"""The driver's library as a shared object, built on demand, which answers from a file."""

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
    """Folder with the library and the file that it answers from."""

    folder: Path

    @property
    def library(self) -> Path:
        """The shared object."""
        return self.folder / NAME

    def set_gpus(self, gpus: Sequence[ScriptedGpu], **facts: Any) -> None:
        """Change the driver's answers for all its users immediately."""
        about = {"reserved_mib": RESERVED_MIB, **facts, "gpus": [asdict(gpu) for gpu in gpus]}
        half = self.folder / f"{FILE}.half"
        half.write_text(json.dumps(about))
        os.replace(half, self.folder / FILE)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Use the library in the binding of this process for the duration of a test."""
        monkeypatch.setattr(pynvml, "nvmlLib", ctypes.CDLL(str(self.library)))
        monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})

    def environment(self) -> Mapping[str, str]:
        """Return the environment variables by which another process finds the library."""
        return {"LD_LIBRARY_PATH": str(self.folder)}


def build(folder: Path) -> FakeDriver:
    """Build the library in a folder; skip the test if there is no gcc."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("gcc is needed to build the driver's library for tests")
    folder.mkdir(parents=True, exist_ok=True)
    command = [gcc, "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC"]
    files = ["-o", str(folder / NAME), str(SOURCES / "nvml.c"), "-ldl", "-lpthread"]
    subprocess.run([*command, *files], check=True)
    return FakeDriver(folder)
