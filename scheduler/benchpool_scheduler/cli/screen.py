"""Output to the terminal: tables that fit, JSON, errors.

There is no colour when piped. Texts of jobs are never interpreted as markup or control sequences.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urljoin

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchpool_scheduler.cli import words
from benchpool_scheduler.errors import BenchpoolError

PIPED_WIDTH = 80
WIDEST = 140
GAP = 2
"""Width of the gap after each column of a table, in characters."""


@dataclass(frozen=True, slots=True)
class Column:
    """Column of a table: its heading, and how it adapts to narrow terminals.

    ``width`` cuts text in the middle. ``rest`` takes the remaining width, on several lines with
    ``wrap``.
    """

    heading: str
    align: Literal["left", "right"] = "left"
    width: int | None = None
    rest: bool = False
    wrap: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """Text with a colour."""

    text: str
    style: str = ""


class Screen:
    """Output of a verb.

    Args:
        json: Print one JSON value instead of tables and sentences.

    ``origin`` is the address that links to pages are relative to.
    """

    def __init__(self, *, json: bool = False) -> None:
        self.json = json
        self.origin = ""
        width = None if sys.stdout.isatty() else PIPED_WIDTH
        self._out = Console(width=width, highlight=False, markup=False, emoji=False)
        if self._out.width > WIDEST:
            self._out.width = WIDEST

    def value(self, value: object) -> None:
        """Print a contract value as JSON."""
        try:
            text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
        except UnicodeEncodeError:  # a path or an argument that is not valid text
            text = json.dumps(msgspec.to_builtins(value), indent=2)
        print(text, flush=True)

    def line(self, text: str = "") -> None:
        """Print a sentence."""
        self._out.print(Text(text), soft_wrap=True)

    def heading(self, text: str) -> None:
        """Print the main answer in bold."""
        self._out.print(Text(text, style="bold"), soft_wrap=True)

    def link(self, url: str) -> str:
        """Return the complete address of a page."""
        return urljoin(f"{self.origin}/", url)

    def facts(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Print names and values, one pair a line."""
        for name, value in pairs:
            self._out.print(Text(f"{name:<11} "), Text(value), sep="", soft_wrap=True)

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[str | Cell]]) -> list[int]:
        """Print a table that fits the width. Return the indexes of rows with a cut last column."""
        table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="dim")
        for column in columns:
            table.add_column(
                column.heading,
                justify=column.align,
                no_wrap=not column.wrap,
                overflow="ellipsis",
                ratio=1 if column.rest else None,
            )
        table.expand = any(column.rest for column in columns)
        shown = [list(map(_text, columns, row)) for row in rows]
        for row in shown:
            table.add_row(*row)
        self._out.print(table)
        return self._cut(columns, shown)

    def _cut(self, columns: Sequence[Column], rows: Sequence[Sequence[Text]]) -> list[int]:
        """Return the indexes of rows whose last column did not fit beside the others."""
        room = self._out.width - GAP
        for at, column in enumerate(columns[:-1]):
            room -= GAP + max([len(column.heading), *(row[at].cell_len for row in rows)])
        return [at for at, row in enumerate(rows) if row[-1].cell_len > room]

    def aside(self, text: str) -> None:
        """Print a message to standard error."""
        print(words.clean(text), file=sys.stderr, flush=True)

    def error(self, error: BenchpoolError) -> None:
        """Print an error: as JSON to standard output, or as a sentence to standard error."""
        if self.json:
            self.value(error.as_json())
        else:
            self.aside(f"benchpool: {error.message}")

    def bytes(self, data: bytes) -> None:
        """Print bytes unchanged."""
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def _text(column: Column, cell: str | Cell) -> Text:
    value = cell if isinstance(cell, Cell) else Cell(cell)
    # Leading spaces show the tree, so they stay.
    text = " " * (len(value.text) - len(value.text.lstrip(" "))) + words.clean(value.text)
    if column.width is not None:
        text = words.cut_in_middle(text, column.width)
    return Text(text, style=value.style)
