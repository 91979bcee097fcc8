"""Messages of the kernel: their text for the log, and the part that the executed copy keeps."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

KEPT_TEXT = 1 << 20
KEPT_RICH = 32 << 20
"""Limits for one cell in the executed copy, in characters: its streams, its figures and tables."""

_LINE = re.compile(r"Cell In\s?\[[^\]]*\], line (\d+)")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


def text_of(kind: str, content: Mapping[str, Any]) -> str:
    r"""Return a message as text for the log; empty if it has none.

    >>> text_of("stream", {"name": "stdout", "text": "loss 1\n"})
    'loss 1\n'
    >>> text_of("display_data", {"data": {"text/plain": "<Figure>", "image/png": "..."}})
    '<Figure>\n'
    """
    if kind == "stream":
        return str(content.get("text", ""))
    if kind in {"display_data", "execute_result"}:
        plain = content.get("data", {}).get("text/plain")
        return f"{plain}\n" if plain else ""
    return ""


def plain(text: str) -> str:
    """Return text without terminal colours."""
    return _ANSI.sub("", text)


def first_line(text: str) -> str:
    r"""Return the first line of an exception's text.

    >>> first_line("no such file\n  in /data"), first_line("")
    ('no such file', '')
    """
    return next(iter(text.strip().splitlines()), "")


def line_of(outputs: Sequence[Mapping[str, Any]]) -> str:
    """Return the line at which a cell failed, as ``(line 2)``; empty if unknown.

    >>> line_of([{"output_type": "error", "traceback": ["Cell In[4], line 2", "----> 2 fit()"]}])
    ' (line 2)'
    """
    for output in outputs:
        if output.get("output_type") == "error":
            found = _LINE.search(plain("\n".join(output.get("traceback", []))))
            if found is not None:
                return f" (line {found[1]})"
    return ""


class Budget:
    """Remaining output that one cell may put into the executed copy."""

    def __init__(self) -> None:
        self._left = {"text": KEPT_TEXT, "rich": KEPT_RICH}

    def take(self, kind: str, content: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Count a message and return the part to keep, or None.

        Of each stream the first ``KEPT_TEXT`` characters are kept.
        """
        if kind == "stream":
            return self._text(content)
        if kind in {"display_data", "execute_result"}:
            return self._rich(
                sum(len(str(each)) for each in content.get("data", {}).values()), content
            )
        return content

    def _text(self, content: Mapping[str, Any]) -> Mapping[str, Any] | None:
        text, left = str(content.get("text", "")), self._left["text"]
        self._left["text"] -= len(text)
        if len(text) <= left:
            return content
        if left < 0:
            return None
        whole = text[:left]
        lines = whole[: whole.rfind("\n") + 1] or whole
        return {**content, "text": lines + _over(KEPT_TEXT, "text is in the log")}

    def _rich(self, size: int, content: Mapping[str, Any]) -> Mapping[str, Any] | None:
        left = self._left["rich"]
        self._left["rich"] -= size
        if size <= left:
            return content
        if left < 0:
            return None
        text = _over(KEPT_RICH, "figures and tables were not kept")
        return {"data": {"text/plain": text}, "metadata": {}, "execution_count": None}


def _over(limit: int, rest: str) -> str:
    return f"[benchpool: this copy keeps {limit >> 20} MiB of a cell; further {rest}]\n"
