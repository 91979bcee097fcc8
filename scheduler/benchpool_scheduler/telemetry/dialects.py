"""What SQLite and PostgreSQL say in different words, and a type that both have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

WHOLE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""Whole numbers of 64 bits: milliseconds since 1970 do not fit into 32."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """One database's words.

    Attributes:
        insert: Begins an insertion that says what becomes of a row that is there already.
        most, least: Function that returns the greatest, the smallest of its arguments.
    """

    insert: Callable[[Table], Any]
    most: str
    least: str


DIALECTS = {
    "sqlite": Dialect(sqlite.insert, "max", "min"),
    "postgresql": Dialect(postgresql.insert, "greatest", "least"),
}


def dialect(connection: Connection) -> Dialect:
    """Return the words of the database at the other end."""
    return DIALECTS[connection.dialect.name]
