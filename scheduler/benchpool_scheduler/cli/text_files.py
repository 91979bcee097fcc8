"""Reading of text files named by the user."""

from __future__ import annotations

import sys
from pathlib import Path

from benchpool_scheduler.errors import InvalidInput


def read(path: Path) -> str:
    """Return the text of a file, or of standard input for ``-``. Errors: InvalidInput."""
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text()
    except (OSError, UnicodeDecodeError) as failed:
        raise InvalidInput(f"{path} cannot be read ({failed}).", field="file") from failed
