"""Limits on the path of a file in a job's folder, or among its results."""

from __future__ import annotations

MOST_DEPTH = 128
"""Maximum number of folders above a file; Python's own recursion limit is about 1,000."""
MOST_PATH = 2048
"""Maximum length of a path, in bytes; the system allows 4,096 including the target folder."""
MOST_NAME = 255
"""Maximum length of a file's or folder's name, in bytes, as in file systems."""


def beyond(path: str) -> str | None:
    """Return how a relative path exceeds a limit, as the rest of a sentence, or None if it fits.

    >>> beyond("a/b.txt")
    >>> beyond("a/" * 130 + "b.txt")
    'lies 130 folders deep; 128 are allowed'
    >>> beyond("é" * 200)
    'has a name of 400 bytes; 255 are allowed'
    """
    names = path.split("/")
    if len(names) - 1 > MOST_DEPTH:
        return f"lies {len(names) - 1} folders deep; {MOST_DEPTH} are allowed"
    longest = max(_size(name) for name in names)
    if longest > MOST_NAME:
        return f"has a name of {longest} bytes; {MOST_NAME} are allowed"
    if _size(path) > MOST_PATH:
        return f"has a path of {_size(path)} bytes; {MOST_PATH} are allowed"
    return None


def _size(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))
