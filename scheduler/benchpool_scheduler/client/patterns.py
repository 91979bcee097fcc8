"""Patterns of ignore files, with git's semantics (gitignore(5), and git's ``wildmatch.c``).

A pattern matches the path itself, never paths below it. A walk does not enter a folder that is left
out, so its content is left out too and cannot be re-included. Names are bytes.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from dataclasses import dataclass

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NEVER = b"(?!)"
_SPECIAL = re.compile(rb"[*?\[\\]")
_MEMBER = re.compile(
    rb"\[:(?P<named>[^\]]*):\]|(?:\\(?P<kept>.)|(?P<low>[^\\]))(?:-(?:\\(?P<to>.)|(?P<high>[^\]\\])))?",
    re.DOTALL,
)
_SETS = {
    b"alnum": (string.ascii_letters + string.digits).encode(),
    b"alpha": string.ascii_letters.encode(),
    b"blank": b" \t",
    b"cntrl": bytes(range(0x20)) + b"\x7f",
    b"digit": string.digits.encode(),
    b"graph": bytes(range(0x21, 0x7F)),
    b"lower": string.ascii_lowercase.encode(),
    b"print": bytes(range(0x20, 0x7F)),
    b"punct": string.punctuation.encode(),
    b"space": b" \t\n\r",
    b"upper": string.ascii_uppercase.encode(),
    b"xdigit": string.hexdigits.encode(),
}


@dataclass(frozen=True, slots=True)
class _Pattern:
    """Pattern of one line.

    Attributes:
        out: Whether matching paths are left out. If False, they are re-included (``!``).
        folders: Whether it matches folders only (``name/``).
        anywhere: Whether it is compared with the last part of the path (no other ``/``).
        matches: Comparison function.
    """

    out: bool
    folders: bool
    anywhere: bool
    matches: Callable[[bytes], object]


class Patterns:
    r"""Patterns of one ignore file. The last match decides.

    >>> rules = Patterns(b"*.log\n!keep.log\nout/\n")
    >>> rules.decide(b"a/b.log", folder=False), rules.decide(b"a/keep.log", folder=False)
    (True, False)
    >>> rules.decide(b"out", folder=True), rules.decide(b"out/a", folder=False)
    (True, None)

    Args:
        text: Content of the file.
    """

    def __init__(self, text: bytes) -> None:
        lines = text.removeprefix(_BYTE_ORDER_MARK).split(b"\n")
        kept = [line.removesuffix(b"\r") for line in lines if line and not line.startswith(b"#")]
        self._last_first = [_pattern(_trimmed(line)) for line in reversed(kept)]

    def decide(self, path: bytes, *, folder: bool) -> bool | None:
        """Return whether a path below the file's folder is left out. None without a match."""
        name = path.rpartition(b"/")[2]
        for pattern in self._last_first:
            part = name if pattern.anywhere else path
            if (folder or not pattern.folders) and pattern.matches(part):
                return pattern.out
        return None


def _trimmed(line: bytes) -> bytes:
    """Return the line without trailing spaces, except one that is escaped by a backslash."""
    bare = line.rstrip(b" ")
    escapes = len(bare) - len(bare.rstrip(b"\\"))
    return line[: len(bare) + escapes % 2]


def _pattern(line: bytes) -> _Pattern:
    glob = line.removeprefix(b"!")
    out, folders = glob == line, glob.endswith(b"/")
    glob = glob.removesuffix(b"/")
    anywhere = b"/" not in glob
    glob = glob.removeprefix(b"/")
    if not _SPECIAL.search(glob):
        return _Pattern(out, folders, anywhere, glob.__eq__)
    return _Pattern(out, folders, anywhere, re.compile(_expression(glob), re.DOTALL).fullmatch)


def _expression(glob: bytes) -> bytes:
    """Translate a pattern to a regular expression. A pattern that git rejects matches nothing.

    >>> _expression(b"a/**/b?")
    b'a/(?:.*/)?b[^/]'
    """
    parts: list[bytes] = []
    at = 0
    while at < len(glob):
        sign = glob[at : at + 1]
        if sign == b"*":
            part, at = _stars(glob, at)
        elif sign == b"[":
            part, at = _set(glob, at + 1)
        elif sign == b"?":
            part, at = b"[^/]", at + 1
        elif sign == b"\\":
            part, at = re.escape(glob[at + 1 : at + 2]) or _NEVER, at + 2
        else:
            part, at = re.escape(sign), at + 1
        parts.append(part)
    return b"".join(parts)


def _stars(glob: bytes, at: int) -> tuple[bytes, int]:
    """Translate stars, and return the position after them.

    Two stars span folders if they fill a part of a path. Git compares the text before the first
    special character separately and restarts after it, so in that position ``a**/b`` spans folders
    too.
    """
    rest = glob[at:].lstrip(b"*")
    end = len(glob) - len(rest)
    begins = glob[:at].endswith(b"/") or not _SPECIAL.search(glob[:at])
    if end - at == 1 or not begins or not (not rest or rest.startswith((b"/", b"\\/"))):
        return b"[^/]*", end
    return (b"(?:.*/)?", end + 1) if rest.startswith(b"/") else (b".*", end)


def _set(glob: bytes, at: int) -> tuple[bytes, int]:
    r"""Translate a bracket expression after its opening bracket. Return also its end.

    >>> _set(b"[a-c]", 1)
    (b'[\\x61\\x62\\x63]', 5)
    """
    other = glob[at : at + 1] in (b"!", b"^")
    start = at = at + other
    members: set[int] = set()
    while at == start or glob[at : at + 1] != b"]":
        member = _MEMBER.match(glob, at)
        signs = _signs(member) if member else None
        if member is None or signs is None:
            return _NEVER, len(glob)
        members.update(signs)
        at = member.end()
    among = set(range(256)) - members if other else members
    signs = b"".join(b"\\x%02x" % sign for sign in sorted(among - set(b"/")))
    return b"[%b]" % signs if signs else _NEVER, at + 1


def _signs(member: re.Match[bytes]) -> bytes | None:
    """Return the characters of a member of a set. None for a class unknown to git."""
    if member["named"] is not None:
        return _SETS.get(member["named"])
    low, high = member["kept"] or member["low"], member["to"] or member["high"]
    return low + bytes(range(low[0], high[0] + 1)) if high else low
