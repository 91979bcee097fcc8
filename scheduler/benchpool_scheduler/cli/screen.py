"""What the terminal shows: tables that fit, JSON, errors.

No colour when piped; texts of jobs are never read as markup or as orders to the terminal.
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
"""Columns of the terminal after each column of a table."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its heading and how it behaves when there is little room.

    ``width`` cuts in the middle; ``rest`` takes what the others leave, on several lines with
    ``wrap``.
    """

    heading: str
    align: Literal["left", "right"] = "left"
    width: int | None = None
    rest: bool = False
    wrap: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """A text with a colour."""

    text: str
    style: str = ""


class Screen:
    """Where a verb prints.

    Args:
        json: Print one JSON value instead of tables and sentences.

    ``origin`` is the address below which links to pages lie.
    """

    def __init__(self, *, json: bool = False) -> None:
        self.json = json
        self.origin = ""
        width = None if sys.stdout.isatty() else PIPED_WIDTH
        self._out = Console(width=width, highlight=False, markup=False, emoji=False)
        if self._out.width > WIDEST:
            self._out.width = WIDEST

    def value(self, value: object) -> None:
        """Print a value of the contract as JSON."""
        try:
            text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
        except UnicodeEncodeError:  # a path or an argument that is no text
            text = json.dumps(msgspec.to_builtins(value), indent=2)
        print(text, flush=True)

    def line(self, text: str = "") -> None:
        """Print a sentence."""
        self._out.print(Text(text), soft_wrap=True)

    def heading(self, text: str) -> None:
        """Print the answer to the question, first."""
        self._out.print(Text(text, style="bold"), soft_wrap=True)

    def link(self, url: str) -> str:
        """Return the whole address of a page."""
        return urljoin(f"{self.origin}/", url)

    def facts(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Print names and values, one a line."""
        for name, value in pairs:
            self._out.print(Text(f"{name:<11} "), Text(value), sep="", soft_wrap=True)

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[str | Cell]]) -> list[int]:
        """Print a table that fits the width; return the rows whose last column was cut."""
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
        """Return the rows whose last column had too little room beside the others."""
        room = self._out.width - GAP
        for at, column in enumerate(columns[:-1]):
            room -= GAP + max([len(column.heading), *(row[at].cell_len for row in rows)])
        return [at for at, row in enumerate(rows) if row[-1].cell_len > room]

    def aside(self, text: str) -> None:
        """Say something beside the output, on standard error."""
        print(words.clean(text), file=sys.stderr, flush=True)

    def error(self, error: BenchpoolError) -> None:
        """Print an error: the object as JSON on standard output, else its sentence on error."""
        if self.json:
            self.value(error.as_json())
        else:
            self.aside(f"benchpool: {error.message}")

    def bytes(self, data: bytes) -> None:
        """Print bytes as they are."""
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def _text(column: Column, cell: str | Cell) -> Text:
    value = cell if isinstance(cell, Cell) else Cell(cell)
    # A tree stands by the spaces before its names.
    text = " " * (len(value.text) - len(value.text.lstrip(" "))) + words.clean(value.text)
    if column.width is not None:
        text = words.cut_in_middle(text, column.width)
    return Text(text, style=value.style)
