"""Differences between the SQL of SQLite and PostgreSQL, and a type for both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

WHOLE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""Integer type of 64 bits: milliseconds since 1970 do not fit into 32."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """SQL constructs of one database.

    Attributes:
        insert: Starts an insertion that can handle conflicts with existing rows.
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
    """Return the SQL constructs of the connected database."""
    return DIALECTS[connection.dialect.name]
