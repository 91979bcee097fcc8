"""Pages of the tutorial as scripts for tests: their code cells, and the words that users type."""

from __future__ import annotations

import re
from dataclasses import dataclass

from benchpool_support.checkout import ROOT

FOLDER = ROOT / "docs" / "tutorial"
_CELL = re.compile(r"^```python\n(.*?)\n^```$", re.M | re.S)
_MARKED = re.compile(r"`([^`\n]+)`|\*\*([^*\n]+)\*\*|\*([^*\n]+)\*")


@dataclass(frozen=True, slots=True)
class TutorialPage:
    """One page.

    Attributes:
        cells: Its blocks of Python, in order.
        marked: Labels and inputs that its text marks as code, bold or italic.
    """

    cells: tuple[str, ...]
    marked: frozenset[str]

    def of(self, words: str) -> str:
        """Return words that the page marks, such as the label of a button.

        Raises:
            AssertionError: The page does not have them.
        """
        assert words in self.marked, f"the page does not name {words!r}"
        return words


def page(name: str) -> TutorialPage:
    """Read a page by its file name."""
    return parsed((FOLDER / name).read_text("utf-8"))


def parsed(text: str) -> TutorialPage:
    """Return the page with this text.

    >>> parsed("Set `lr`, press **Send**.\\n\\n```python\\nlr = 1\\n\\nlr\\n```\\n").cells
    ('lr = 1\\n\\nlr',)
    """
    prose = _CELL.sub("", text)
    marked = {next(filter(None, found)) for found in _MARKED.findall(prose)}
    return TutorialPage(tuple(_CELL.findall(text)), frozenset(marked))
