"""Preparation of a worker: submitted files, the checkpoint, and the address of the first worker."""

from __future__ import annotations

import hashlib
import os
import socket
from typing import TYPE_CHECKING

from . import archives, paths

if TYPE_CHECKING:
    import threading

    from .config import AgentConfig
    from .link import Link

PATIENCE_S = 900.0
"""Timeout for an unreachable scheduler while a worker fetches its files, in seconds."""
MEETING_S = 120.0


class CouldNotFetch(Exception):
    """A file is missing or damaged; the text is for the user."""


def fetch_all(config: AgentConfig, link: Link) -> None:
    """Fetch contents and the checkpoint.

    Raises CouldNotFetch, LinkAway, LinkRefused or OSError.
    """
    for sha256 in config.hashes:
        folder = os.path.join(paths.OBJECTS, sha256[:2])
        os.makedirs(folder, mode=0o700, exist_ok=True)
        target = os.path.join(folder, sha256)
        if not link.fetch(f"objects/{sha256}", target, PATIENCE_S):
            raise CouldNotFetch("a submitted file is missing on the server; submit the job again")
        if _hash(target) != sha256:
            raise CouldNotFetch("a submitted file was damaged in transfer; submit the job again")
    os.makedirs(config.checkpoint, mode=0o700, exist_ok=True)
    if config.attempt == 1 or not config.carries:
        return
    # The checkpoint of the first worker is unpacked last and so takes precedence.
    for index in reversed(range(config.workers)):
        packed = os.path.join(paths.ROOT, "checkpoint.tar")
        if link.fetch(f"checkpoint/{index}", packed, PATIENCE_S):
            try:
                archives.unpack(packed, config.checkpoint)
            except archives.Damaged as wrong:
                raise CouldNotFetch(
                    f"the checkpoint that worker {index} sent is damaged ({wrong}); submit the "
                    "job again, or save to a volume that its pods mount"
                ) from wrong
            os.unlink(packed)


def wait_for_name(name: str, ended: threading.Event) -> bool:
    """Wait until a host name resolves; return False on timeout or when ``ended`` is set.

    The first look-up of a worker that has just started may fail.
    """
    left = MEETING_S
    while left > 0 and not ended.is_set():
        try:
            socket.getaddrinfo(name, None)
            return True
        except OSError:
            ended.wait(0.25)
            left -= 0.25
    return False


def _hash(path: str) -> str:
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            found.update(piece)
    return found.hexdigest()
