"""Exhausted resources of a machine: disks of a few pages that a test can fill, descriptors."""

from __future__ import annotations

import errno
import itertools
import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a tmpfs")


class SmallDisk:
    """Mounted file system with little space."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filling = folder / "filling"

    def fill(self) -> None:
        """Take all free space and all free inodes."""
        with open(self._filling, "ab", buffering=0) as file:
            for size in (65536, 4096, 1):
                _until_full(partial(file.write, b"x" * size))
        numbers = itertools.count()
        _until_full(lambda: (self.folder / f"filling-{next(numbers)}").touch())

    def leave(self, inodes: int) -> None:
        """Free this number of inodes, and as many pages."""
        os.truncate(self._filling, max(0, self._filling.stat().st_size - inodes * 8192))
        for number in range(inodes):
            (self.folder / f"filling-{number}").unlink(missing_ok=True)

    def make_room(self) -> None:
        """Free everything that ``fill`` took."""
        for file in self.folder.glob("filling*"):
            file.unlink()


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    """Prevent this process from opening more files."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, before[1]))
    taken = []
    try:
        while True:
            taken.append(os.open("/dev/null", os.O_RDONLY))
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for descriptor in taken:
            os.close(descriptor)


def _until_full(take: Callable[[], object]) -> None:
    try:
        while True:
            take()
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise


@contextmanager
def small_disk(folder: Path, size: str = "1m", inodes: int = 400) -> Iterator[SmallDisk]:
    """Create a folder and mount a small disk at it."""
    folder.mkdir(parents=True, mode=0o700)
    options = f"size={size},nr_inodes={inodes},mode=700"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", folder], check=True)
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
