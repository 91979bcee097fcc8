"""Errors that are the machine's and no job's: it has run out of something, or its disk fails."""

from __future__ import annotations

import errno

FAULTS = frozenset(
    {
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EAGAIN,
        errno.ENOMEM,
        errno.EIO,
    }
)
"""What passes by itself, or when somebody looks after the machine; then the same works again."""


def number_of(error: BaseException) -> int | None:
    """Return the number of a fault of the machine, None for every other error.

    >>> import errno
    >>> number_of(OSError(errno.ENOSPC, "full")) == errno.ENOSPC
    True
    >>> number_of(FileNotFoundError(errno.ENOENT, "gone")), number_of(ValueError("no"))
    (None, None)
    """
    if isinstance(error, MemoryError):
        return errno.ENOMEM
    if isinstance(error, OSError) and error.errno in FAULTS:
        return error.errno
    return None
