"""Atomic replacement of files that only the service's account can read."""

from __future__ import annotations

import os
from pathlib import Path


def write(target: Path, data: bytes) -> None:
    """Replace a file durably; its folder is created when missing.

    Errors: OSError, and then the file is unchanged.
    """
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = target.with_name(f".{target.name}.new")
    try:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        new.rename(target)
    except OSError:
        new.unlink(missing_ok=True)
        raise
