"""A file of ours that is written whole or not at all, readable for the service's account alone."""

from __future__ import annotations

import os
from pathlib import Path


def write(target: Path, data: bytes) -> None:
    """Replace a file; it is on disk when this returns. Its folder is made where it is missing.

    Errors: OSError, then the file is as it was.
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
