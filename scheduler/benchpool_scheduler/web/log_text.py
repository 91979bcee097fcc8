r"""Logs as text for a page, without terminal control sequences and invalid bytes.

>>> plain(b"\x1b[31mloss\x1b[0m 0.5\n10%\r100%\n")
'loss 0.5\n100%\n'
"""

from __future__ import annotations

import re

_CONTROL_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours and cursor moves
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles and links
    r"|\x1b[@-Z\\-_]?"
)
_OTHER_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def plain(data: bytes) -> str:
    """Return the text that a terminal would show; ``logtext.js`` does the same in the browser.

    A carriage return restarts its line, as in progress bars. Bidirectional control characters are
    removed: they could make a line look like another one.
    """
    text = _CONTROL_SEQUENCE.sub("", data.decode("utf-8", "replace")).replace("\r\n", "\n")
    lines = [_last_writing(line) for line in text.split("\n")]
    return _OTHER_CONTROL.sub("", "\n".join(lines))


def tail(data: bytes, cut: bool) -> str:
    """Return the text, from its first complete line if ``cut`` (the start is missing)."""
    if cut and b"\n" in data:
        data = data.split(b"\n", 1)[1]
    return plain(data)


def _last_writing(line: str) -> str:
    parts = [part for part in line.split("\r") if part]
    return parts[-1] if parts else ""
