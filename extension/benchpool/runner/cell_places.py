"""Positions of traceback lines in the notebook, by the cell numbers on the submitter's screen."""

from __future__ import annotations

import re
from collections.abc import Mapping

_BY_COUNT = re.compile(
    r"(?:Cell|Input) In ?\[(?P<count>\d+)\]"
    r"(?:, (?:line (?P<line>\d+)|in <cell line: (?P<first>\d+)>))?"
)
"""IPython's name of a cell: the number of cells that ran before it."""

_BY_FILE = re.compile(
    r"(?P<file>File \")?(?P<path>/[^\s\"]*/ipykernel_\d+/(?P<code>\d+)\.py)"
    r"(?:(?(file)\", line |:)(?P<line>\d+))?"
)
"""Python's name of a cell: a file that does not exist, named after a hash of the cell."""


class CellPlaces:
    """Cell numbers by the names that kernels give to cells.

    >>> places = CellPlaces()
    >>> places.begins(5, "x = 1", 4)
    >>> places.renumbered("Cell In[4], line 2, in fit(x)")
    'cell 5, line 2, in fit(x)'
    >>> places.renumbered("Cell In[3], line 2")
    'Cell In[3], line 2'
    """

    def __init__(self) -> None:
        self._by_count: dict[str, int] = {}
        self._by_code: dict[str, int] = {}

    def begins(self, number: int, source: str, count: int) -> None:
        """Record that the notebook's cell ``number`` runs with the kernel's number ``count``."""
        self._by_count[str(count)] = number
        name = _name_of(source)
        if name is not None:
            self._by_code[name] = number

    def renumbered(self, text: str) -> str:
        """Return an IPython traceback with the notebook's cell numbers."""
        return _BY_COUNT.sub(lambda found: _place(found, self._by_count, found["count"]), text)

    def printed(self, text: str) -> str:
        """Return a program's output with the notebook's cell numbers.

        >>> places = CellPlaces()
        >>> places._by_code = {"160": 5}
        >>> places.printed('  File "/tmp/ipykernel_7/160.py", line 3, in f')
        '  cell 5, line 3, in f'
        >>> places.printed("/tmp/ipykernel_7/160.py:3: UserWarning: old")
        'cell 5, line 3: UserWarning: old'
        """
        if "ipykernel_" not in text:
            return text
        return _BY_FILE.sub(lambda found: _place(found, self._by_code, found["code"]), text)


def _place(found: re.Match[str], known: Mapping[str, int], name: str) -> str:
    number = known.get(name)
    if number is None:
        return found[0]
    line = found["line"] or found.groupdict().get("first")
    return f"cell {number}, line {line}" if line else f"cell {number}"


def _name_of(source: str) -> str | None:
    """Return ipykernel's file name for a cell, or None if unknown."""
    try:
        from ipykernel.compiler import get_tmp_hash_seed, murmur2_x86

        return str(murmur2_x86(source, get_tmp_hash_seed()))
    except (ImportError, TypeError, ValueError):
        return None  # other versions may differ; then the file name stays
