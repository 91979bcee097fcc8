"""Tables as comma-separated values, safe to open in a spreadsheet program."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from benchpool_scheduler.phrases.texts import changed

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""Prefixes that a spreadsheet reads as a formula. An apostrophe before them prevents it."""


def as_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    r"""Return a table as CSV, with its heading.

    >>> as_csv(["who", "GPUs"], [["=1+1", -2], [None, 3]])
    "who,GPUs\n'=1+1,-2\n,3\n"
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


class Recorded(Protocol):
    """Record of the audit trail."""

    @property
    def number(self) -> int: ...
    @property
    def at(self) -> datetime: ...
    @property
    def actor(self) -> str: ...
    @property
    def address(self) -> str: ...
    @property
    def action(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def before(self) -> Mapping[str, object]: ...
    @property
    def after(self) -> Mapping[str, object]: ...


RECORDED = ("number", "at", "actor", "address", "action", "target", "rule", "reason", "what")


def audit_table(records: Iterable[Recorded]) -> str:
    """Return records of the audit trail as CSV."""
    return as_csv(
        RECORDED,
        (
            (
                *(one.number, one.at.isoformat(), one.actor, one.address, one.action, one.target),
                *(one.after.get("rule", ""), one.reason, changed(one.before, one.after)),
            )
            for one in records
        ),
    )


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
