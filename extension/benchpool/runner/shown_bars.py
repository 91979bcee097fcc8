"""Progress bars shown as widgets or HTML, converted to lines of text for the log."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any

EVERY_S = 1.0
"""Minimum interval between lines of a moving bar, in seconds; a full bar is always written."""

WIDTH = 10
MOST = 10_000
"""Maximum number of widgets that are remembered."""

_PROGRESS = re.compile(
    r"<progress\s[^>]*?value=['\"](?P<value>[\d.]+)['\"][^>]*?max=['\"](?P<max>[\d.]+)"
)
_TIMES = re.compile(r"\[[^\]<]*?(?P<spent>[\d:]+) *< *(?P<left>[\d:?]+)")
_BLANKS = str.maketrans({"\xa0": " ", "\u2007": " "})
"""Non-breaking blanks that pages use, as ordinary ones."""

_TAG = re.compile(r"<[^>]*>")


class ShownBars:
    """State of the widgets of ``tqdm.auto`` and the ``<progress>`` elements of other libraries."""

    def __init__(self) -> None:
        self._states: dict[str, dict[str, Any]] = {}
        self._boxes: dict[str, list[str]] = {}
        self._next_at: dict[str, float] = {}

    def line(self, kind: str, content: Mapping[str, Any], now: float) -> str:
        r"""Return the text of a bar that a message moved, as on a terminal; usually empty.

        Args:
            kind: Type of the message.
            now: Clock in seconds.

        >>> text = "<progress value='3' max='4'></progress> [3/4 00:06 < 00:02]"
        >>> ShownBars().line("update_display_data", {"data": {"text/html": text}}, 9.0)
        '\r 75%|#######5  | 3/4 [00:06<00:02]'
        """
        if kind in {"display_data", "update_display_data"}:
            shown = str(content.get("transient", {}).get("display_id"))
            page = str(content.get("data", {}).get("text/html", ""))
            return self._due(shown, _of_html(page), now)
        if kind in {"comm_open", "comm_msg"}:
            return self._due(str(content.get("comm_id")), self._of_widget(content), now)
        return ""

    def _of_widget(self, content: Mapping[str, Any]) -> tuple[float, str]:
        comm = str(content.get("comm_id"))
        changed = content.get("data", {}).get("state")
        if not isinstance(changed, dict) or (
            comm not in self._states and len(self._states) >= MOST
        ):
            return 0.0, ""
        state = self._states.setdefault(comm, {})
        names = ("_model_name", "value", "max", "children", "description")
        state.update({name: changed[name] for name in names if name in changed})
        for child in state.get("children") or ():
            self._boxes[str(child).removeprefix("IPY_MODEL_")] = [
                str(each).removeprefix("IPY_MODEL_") for each in state["children"]
            ]
        box = self._boxes.get(comm, [])
        # tqdm changes the bar, then the text to its left, and last the one to its right.
        return self._of_box(box) if "value" in changed and box[-1:] == [comm] else (0.0, "")

    def _of_box(self, inside: list[str]) -> tuple[float, str]:
        """Return the bar between its two texts, in tqdm's layout."""
        states = [self._states.get(each, {}) for each in inside]
        at = next(
            (n for n, it in enumerate(states) if "Progress" in str(it.get("_model_name"))), -1
        )
        if not 0 < at < len(states) - 1:
            return 0.0, ""
        left, right = (_plain(str(states[n].get("value", ""))) for n in (at - 1, at + 1))
        share = _share(states[at].get("value"), states[at].get("max"))
        return (share, f"\r{left.rstrip()}|{_drawn(share)}| {right.strip()}") if left else (0.0, "")

    def _due(self, which: str, bar: tuple[float, str], now: float) -> str:
        share, text = bar
        if not text or (now < self._next_at.get(which, 0.0) and share < 1.0):
            return ""
        if len(self._next_at) < MOST:
            self._next_at[which] = now + EVERY_S
        return text


def _of_html(text: str) -> tuple[float, str]:
    found = _PROGRESS.search(text)
    if found is None:
        return 0.0, ""
    share = _share(found["value"], found["max"])
    times = _TIMES.search(_plain(text))
    spent, left = (times["spent"], times["left"]) if times else ("00:00", "?")
    bar = f"\r{share * 100:3.0f}%|{_drawn(share)}| {found['value']}/{found['max']} [{spent}<{left}]"
    return share, bar


def _share(value: Any, most: Any) -> float:
    try:
        return min(1.0, max(0.0, float(value) / float(most)))
    except (TypeError, ValueError, ZeroDivisionError):
        return 0.0


def _drawn(share: float) -> str:
    """Return a bar as tqdm draws it without Unicode.

    >>> _drawn(0.75), _drawn(1.0)
    ('#######5  ', '##########')
    """
    tenths = int(share * WIDTH * 10)
    whole, part = divmod(tenths, 10)
    return ("#" * whole + (str(part) if part else "")).ljust(WIDTH)


def _plain(text: str) -> str:
    return html.unescape(_TAG.sub("", text)).translate(_BLANKS)
