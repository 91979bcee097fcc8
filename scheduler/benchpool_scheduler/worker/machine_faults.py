"""Errors caused by the machine rather than by a job: exhausted resources or a failing disk."""

from __future__ import annotations

import errno
import os

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
"""Errors that end by themselves or after maintenance; the same operation can then succeed."""


def sentence(number: int) -> str:
    """Return a clause that describes a fault.

    >>> sentence(errno.ENOSPC)
    'the machine could not start a worker (No space left on device)'
    """
    return f"the machine could not start a worker ({os.strerror(number)})"


def number_of(error: BaseException) -> int | None:
    """Return the ``errno`` of a fault of the machine; None for every other error.

    >>> import errno
    >>> number_of(OSError(errno.ENOSPC, "full")) == errno.ENOSPC
    True
    >>> number_of(FileNotFoundError(errno.ENOENT, "gone")), number_of(ValueError("no"))
    (None, None)
    """
    if isinstance(error, MemoryError):
        return errno.ENOMEM
    if isinstance(error, RuntimeError) and "start new thread" in str(error):
        return errno.EAGAIN
    if isinstance(error, OSError) and error.errno in FAULTS:
        return error.errno
    return None
