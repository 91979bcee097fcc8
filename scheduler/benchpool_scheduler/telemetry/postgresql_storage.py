"""The telemetry database on a PostgreSQL server, in its own schema, created here."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy import Engine
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError

from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.telemetry import schema
from benchpool_scheduler.telemetry.dialects import WHOLE
from benchpool_scheduler.telemetry.storage import UnknownLayout

SCHEMA = "benchpool_telemetry"
ASIDE = f"{SCHEMA}_aside"
DRIVER = "postgresql+psycopg2"
CONNECT_S = 5
STATEMENT_S = 60
"""Timeout of a statement, in seconds; the next minute tries again."""

_ours = sa.MetaData()
_layout = sa.Table("layout", _ours, sa.Column("number", WHOLE, nullable=False))


class PostgreSql:
    """Storage on a PostgreSQL server.

    Args:
        url: As SQLAlchemy writes it, postgresql+psycopg2://user:password@host/database.

    Errors: InvalidInput for another database, or where its driver is not installed.
    """

    def __init__(self, url: str) -> None:
        self._url = _checked(url)
        self._engine: Engine | None = None

    @property
    def place(self) -> str:
        """Return the schema and the server's address, without a password."""
        where = self._url.set(username=None, password=None, query={})
        return f"the schema {SCHEMA} of {where.render_as_string()}"

    def connect(self) -> Engine:
        """Connect to the server, and create the schema and missing tables."""
        bare = sa.create_engine(
            self._url,
            connect_args={"connect_timeout": CONNECT_S, "application_name": "benchpool"},
            pool_pre_ping=True,
        )
        sa.event.listen(bare, "connect", _prepare)
        engine = bare.execution_options(schema_translate_map={None: SCHEMA})
        try:
            with engine.begin() as connection:
                connection.execute(sa.schema.CreateSchema(SCHEMA, if_not_exists=True))
                _ours.create_all(connection)
                number = connection.scalar(sa.select(_layout.c.number))
                if number not in (None, schema.LAYOUT):
                    raise UnknownLayout(number)
                schema.metadata.create_all(connection)
                if number is None:
                    connection.execute(_layout.insert().values(number=schema.LAYOUT))
        except BaseException:
            engine.dispose()
            raise
        self._engine = engine
        return engine

    def lost(self) -> str | None:
        """Return None: the server reports missing tables itself."""
        return None

    def set_aside(self, damage: DatabaseError) -> str | None:
        """Rename a schema of another release; other damage is left to the server's
        administrator.
        """
        if not isinstance(damage, UnknownLayout):
            return None
        engine = sa.create_engine(self._url, connect_args={"connect_timeout": CONNECT_S})
        try:
            with engine.begin() as connection:
                connection.execute(sa.schema.DropSchema(ASIDE, cascade=True, if_exists=True))
                connection.execute(sa.text(f"ALTER SCHEMA {SCHEMA} RENAME TO {ASIDE}"))
        finally:
            engine.dispose()
        return f"It was renamed to the schema {ASIDE}"

    def size(self) -> int:
        """Return the size of tables and indexes in bytes, 0 before ``connect``."""
        if self._engine is None:
            return 0
        of = [f"pg_total_relation_size('{SCHEMA}.{table}')" for table in schema.metadata.tables]
        with self._engine.connect() as connection:
            return int(connection.scalar(sa.text(f"SELECT {' + '.join(of)}")) or 0)


def _checked(url: str) -> URL:
    field = "telemetry_database"
    try:
        found = make_url(url)
    except ArgumentError as error:
        # The message leaves out the URL: it may contain a password.
        raise InvalidInput(
            "The address of the telemetry database is invalid. Write "
            f"{DRIVER}://USER:PASSWORD@HOST/DATABASE.",
            field=field,
        ) from error
    if found.drivername != DRIVER:
        raise InvalidInput(
            f"The address of the telemetry database begins with {found.drivername}://, but only "
            f"{DRIVER}:// is supported. Without an address, a file in the state folder is used.",
            field=field,
        )
    try:
        found.get_dialect().import_dbapi()
    except ImportError as error:
        raise InvalidInput(
            "The driver of PostgreSQL, psycopg2, is not installed: the telemetry database cannot "
            "be reached. Install benchpool[postgresql].",
            field=field,
        ) from error
    return found


def _prepare(connection: Any, _record: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET statement_timeout = '{STATEMENT_S}s'")
    connection.commit()
