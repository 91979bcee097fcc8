"""Safe display of texts and values that users wrote."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import TypeVar, cast

V = TypeVar("V")


def changed(before: Mapping[str, object], after: Mapping[str, object], reason: str = "") -> str:
    """Return the changes of an audit record and the reason, in words.

    >>> changed({"priority": 50}, {"priority": 70}, "a deadline")
    'priority 50 → 70 (a deadline)'
    >>> changed({}, {"state": "queued", "name": "fit"}), changed({}, {}, "There is no such job.")
    ('state queued, name fit', 'There is no such job.')
    >>> changed({"tags": ""}, {"tags": "a, b", "preemptible": True, "missing": ""})
    'tags none → a, b, preemptible yes'
    >>> changed({}, {"intake": "draining", "reason": "a fan"}, "a fan")
    'intake draining (a fan)'
    """
    text = ", ".join(
        f"{name} {_plain(before[name])} → {_plain(after.get(name))}"
        if name in before
        else f"{name} {_plain(after[name])}"
        for name in dict.fromkeys([*after, *before])
        if name in before or after[name] not in (None, "")
        if not (reason and name == "reason" and after.get(name) == reason)
    )
    return f"{text} ({reason})" if text and reason else text or reason


def _plain(value: object) -> str:
    """Return a value of a record in words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value in (None, "") else str(value)


UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
"""Categories of invisible characters, and of characters that change how other text is displayed:
control characters (including ESC and C1), direction marks, zero-width characters, line separators.
"""


def visible(text: str) -> str:
    r"""Return a user's text with all characters visible; deceptive ones are shown as escapes.

    >>> visible("loss 0.5"), visible("a\x1b[31mb"), visible("invoice\u202efdp.exe")
    ('loss 0.5', 'a\\x1b[31mb', 'invoice\\u202efdp.exe')
    >>> visible("Träume 🚀"), visible("zero\u200bwidth")
    ('Träume 🚀', 'zero\\u200bwidth')
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        sign.encode("unicode_escape").decode() if unicodedata.category(sign) in UNSEEN else sign
        for sign in text
    )


def visible_value(value: V) -> V:
    r"""Return a JSON value with all characters of its texts visible.

    >>> visible_value({"names": ["a", "b\u202e"], "lr": 0.1})
    {'names': ['a', 'b\\u202e'], 'lr': 0.1}
    """
    match value:
        case str():
            return cast(V, visible(value))
        case list():
            return cast(V, [visible_value(one) for one in value])
        case dict():
            return cast(V, {key: visible_value(one) for key, one in value.items()})
    return value


def one_line(text: str | None) -> str:
    r"""Return a user's text in one line, with all characters visible.

    >>> one_line(" new\n  disk "), one_line("a\x1b[31mb"), one_line(None)
    ('new disk', 'a\\x1b[31mb', '')
    """
    return visible(" ".join((text or "").split()))


def server_called(server: str, whose: str = "the") -> str:
    """Return the name of a notebook server in a sentence; the default server has none.

    >>> server_called("paper"), server_called(""), server_called("", "your")
    ('server “paper”', 'the default server', 'your default server')
    """
    return f"server “{server}”" if server else f"{whose} default server".lstrip()
