"""Tables of ``facts.toml``: words, and patterns of dotted paths."""

from __future__ import annotations

import fnmatch
import functools
import importlib.resources
import re
import tomllib
from collections.abc import Iterable
from typing import Any


@functools.cache
def tables() -> dict[str, Any]:
    """Return the content of ``facts.toml``."""
    text = importlib.resources.files("benchpool.cells").joinpath("facts.toml").read_text("utf-8")
    return tomllib.loads(text)


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


class PathPatterns:
    """Shell patterns of dotted paths, each with a value; the longest match wins."""

    def __init__(self, table: Iterable[tuple[str, Any]]) -> None:
        pairs = sorted(table, key=lambda each: -len(re.sub(r"\[.*?\]|[*?]", "", each[0])))
        self._plain = {pattern: value for pattern, value in pairs if not set(pattern) & set("*[?")}
        self._globs = [
            (re.compile(fnmatch.translate(pattern)), value)
            for pattern, value in pairs
            if pattern not in self._plain
        ]

    def find(self, path: str) -> Any:
        """Return the value of the best matching pattern, or None."""
        if path in self._plain:
            return self._plain[path]
        return next((value for pattern, value in self._globs if pattern.match(path)), None)
