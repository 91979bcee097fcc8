"""Messages about files that are not sent with a job, for terminal, dialog and Python. Pure.

Each file or folder that is left out has a reason. Caches and git-ignored files are only counted by
reason. Others are also named.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from benchpool_scheduler.client.exclusions import BUILT_IN, ENVIRONMENT, IGNORE_FILE, IGNORED_BY_GIT
from benchpool_scheduler.phrases import count, data_size, visible

NOT_UTF8 = "a name that is not valid UTF-8"
CONTROL = "a name with a control character"
TOO_LARGE = "larger than the limit for one file"
COUNTED = frozenset({*BUILT_IN.values(), ENVIRONMENT, IGNORED_BY_GIT, f"listed in {IGNORE_FILE}"})
"""Reasons that are only counted, because the user expects them."""
NAMED = 20
"""Maximum number of files and folders named in messages."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """File or folder that is not sent, and why. ``path`` is its displayed form."""

    path: str
    why: str

    @property
    def reason(self) -> str:
        """Reason without details of this file.

        >>> LeftOut("data", "cannot be read (Permission denied)").reason
        'cannot be read'
        """
        if "limit for one file" in self.why:
            return TOO_LARGE
        return self.why.partition(" (")[0].partition(";")[0]


def shown(path: str) -> str:
    r"""Return a path with all characters visible. Undecodable bytes become their numbers.

    >>> shown("tab\tname.txt"), shown("caf\udce9.txt")
    ('tab\\tname.txt', 'caf\\xe9.txt')
    """
    return visible(os.fsencode(path).decode("utf-8", "backslashreplace"))


def why_name(name: str) -> str | None:
    r"""Return why a file of this name cannot be sent, or None.

    >>> why_name("Screenshot at 9.41.07\u202fPM.png"), why_name("back\\slash"), why_name("a\nb")
    (None, None, 'a name with a control character')
    """
    try:
        name.encode()
    except UnicodeEncodeError:
        return NOT_UTF8
    controls = any(ord(each) < 32 or 127 <= ord(each) < 160 for each in name)
    return CONTROL if controls else None


def sentences(
    files: int, size: int, left_out: Sequence[LeftOut], counts: Counter[str]
) -> list[str]:
    """Return what is sent and what is left out, without full stops. Empty if all is sent.

    Args:
        files: Number of files sent. ``size``: their bytes.
        left_out: Some or all of the left-out files. ``counts``: their number by reason.

    >>> left = [LeftOut(".git", "version control"), LeftOut(".env", "looks like a secret; ...")]
    >>> for line in sentences(2, 2048, left, Counter(each.reason for each in left)):
    ...     print(line)
    sent with the job: 2 files (2.0 KiB); left out: 1 × version control, 1 × looks like a secret
    left out: .env (looks like a secret; ...)
    """
    if not counts:
        return []
    reasons = ", ".join(f"{number} × {reason}" for reason, number in counts.most_common())
    sent = f"{count(files, 'file')} ({data_size(size)})"
    named = [each for each in left_out if each.reason not in COUNTED]
    lines = [f"left out: {each.path} ({each.why})" for each in named[:NAMED]]
    more = sum(number for reason, number in counts.items() if reason not in COUNTED) - len(lines)
    lines += [f"left out: {more} more, counted above"] if more > 0 else []
    return [f"sent with the job: {sent}; left out: {reasons}", *lines]
