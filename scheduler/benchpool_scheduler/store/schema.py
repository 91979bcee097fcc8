"""The tables, and the migrations from older versions.

Each job, attempt, preemption and lease is one JSON document. Columns exist for values that SQL must
search or keep unique. ``held_gpus`` repeats the holder of each GPU, so that its primary key rejects
a second holder even if the code above has a bug (R1).
"""

from __future__ import annotations

import contextlib
import sqlite3

from benchpool_scheduler.errors import Unavailable

APPLICATION_ID = 0x62706F6C  # "bpol"
INCREMENTAL = 2
"""``PRAGMA auto_vacuum`` mode: free pages return to the disk on request."""


def _asked_into_spec() -> str:
    """Return the statement that moves a job's requested resources of 0.1.0 into its ``spec``.

    The facts had the values that differ from their defaults, with ``min_workers`` computed; the
    requested ``min_workers`` is in the submission.
    """
    names = (
        *("gpus", "workers", "min_workers", "priority", "preemptible", "time_limit_s"),
        *("gpu_models", "required_level", "preferred_level", "spread", "cpus", "memory_gib"),
    )
    listed = ", ".join(f"'{name}'" for name in names if name != "min_workers")
    gone = ", ".join(f"'$.{name}'" for name in names)
    return f"""UPDATE jobs SET facts = json_set(json_remove(facts, {gone}), '$.spec', json((
        SELECT json_group_object(key, CASE type
            WHEN 'true' THEN json('true') WHEN 'false' THEN json('false')
            WHEN 'array' THEN json(value) ELSE value END)
        FROM (
            SELECT key, type, value FROM json_each(jobs.facts) WHERE key IN ({listed})
            UNION ALL
            SELECT key, type, value FROM json_each(CAST(jobs.submission AS TEXT))
            WHERE key = 'min_workers' AND type <> 'null'
        )
    )))"""  # noqa: S608 (names of ours)


MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE jobs (
            number INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            user TEXT NOT NULL,
            key TEXT,
            facts TEXT NOT NULL,
            submission BLOB NOT NULL,
            UNIQUE (user, key)
        ) STRICT""",
        """CREATE TABLE attempts (
            job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
            attempt INTEGER NOT NULL,
            facts TEXT NOT NULL,
            PRIMARY KEY (job, attempt)
        ) STRICT, WITHOUT ROWID""",
        """CREATE TABLE preemptions (
            job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
            attempt INTEGER NOT NULL,
            at REAL NOT NULL,
            facts TEXT NOT NULL,
            PRIMARY KEY (job, attempt, at)
        ) STRICT, WITHOUT ROWID""",
        """CREATE TABLE leases (
            id TEXT PRIMARY KEY,
            user TEXT NOT NULL,
            server TEXT NOT NULL,
            spawn TEXT NOT NULL,
            facts TEXT NOT NULL,
            UNIQUE (user, server, spawn)
        ) STRICT, WITHOUT ROWID""",
        """CREATE TABLE held_gpus (
            gpu TEXT PRIMARY KEY,
            job TEXT REFERENCES jobs (id) ON DELETE CASCADE,
            lease TEXT REFERENCES leases (id) ON DELETE CASCADE,
            CHECK ((job IS NULL) <> (lease IS NULL))
        ) STRICT, WITHOUT ROWID""",
        "CREATE INDEX held_gpus_of_job ON held_gpus (job)",
        "CREATE INDEX held_gpus_of_lease ON held_gpus (lease)",
        """CREATE TABLE objects (
            sha256 TEXT NOT NULL,
            user TEXT NOT NULL,
            size INTEGER NOT NULL,
            at REAL NOT NULL,
            PRIMARY KEY (sha256, user)
        ) STRICT, WITHOUT ROWID""",
        """CREATE TABLE job_objects (
            job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
            sha256 TEXT NOT NULL,
            PRIMARY KEY (job, sha256)
        ) STRICT, WITHOUT ROWID""",
        "CREATE INDEX job_objects_by_hash ON job_objects (sha256)",
    ),
    (
        """CREATE TABLE past_use (
            project TEXT NOT NULL,
            user TEXT NOT NULL,
            gpu_s REAL NOT NULL,
            at REAL NOT NULL,
            PRIMARY KEY (project, user)
        ) STRICT, WITHOUT ROWID""",
    ),
    (_asked_into_spec(),),
    (
        # Lists the jobs that need not be read at the start; a job that is not in it is read.
        """CREATE TABLE IF NOT EXISTS ended_jobs (
            job TEXT PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
            at REAL NOT NULL
        ) STRICT, WITHOUT ROWID""",
        "CREATE INDEX IF NOT EXISTS ended_jobs_by_end ON ended_jobs (at)",
        """INSERT OR REPLACE INTO ended_jobs (job, at)
            SELECT id, ended FROM (
                SELECT id, CASE WHEN json_valid(facts) THEN json_extract(facts, '$.ended') END
                AS ended FROM jobs
            ) WHERE ended IS NOT NULL""",
    ),
    (
        """CREATE TABLE start_calibration (
            kind TEXT NOT NULL,
            horizon INTEGER NOT NULL,
            low REAL NOT NULL,
            high REAL NOT NULL,
            outcomes TEXT NOT NULL,
            PRIMARY KEY (kind, horizon)
        ) STRICT, WITHOUT ROWID""",
    ),
    (
        """CREATE TABLE nodes (
            name TEXT PRIMARY KEY,
            facts TEXT NOT NULL
        ) STRICT, WITHOUT ROWID""",
    ),
)
"""Statements that migrate from version N to N + 1, for each N from 0."""


def configure(connection: sqlite3.Connection) -> None:
    """Set pragmas for durable commits and a safe file."""
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA wal_autocheckpoint = 1000")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA busy_timeout = 5000")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")


def outdated(connection: sqlite3.Connection) -> int | None:
    """Return the version of one of our databases if it is older than the present one, else None."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    return version if 0 < version < len(MIGRATIONS) else None


def migrate(connection: sqlite3.Connection) -> None:
    """Migrate the file to the present version, one transaction per step.

    Errors: Unavailable for a file of another program, or of a newer version.
    """
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    owner = int(connection.execute("PRAGMA application_id").fetchone()[0])
    if owner not in (0, APPLICATION_ID) or (owner == 0 and version != 0):
        raise Unavailable(
            f"The database {_file(connection)} belongs to another program: choose another folder "
            "with --state.",
            code="store-foreign",
        )
    if version > len(MIGRATIONS):
        raise Unavailable(
            f"The database {_file(connection)} has version {version}; this release of benchpool "
            f"supports up to version {len(MIGRATIONS)}. The database was not changed, and running "
            "jobs continue. Start the newer release, or replace the database by an older copy.",
            code="store-newer",
            numbers={"version": version, "known": len(MIGRATIONS)},
        )
    for number in range(version, len(MIGRATIONS)):
        _step(connection, number)
    shrinkable(connection)


def shrinkable(connection: sqlite3.Connection) -> None:
    """Enable incremental vacuum; a file without it is rewritten once."""
    if connection.execute("PRAGMA auto_vacuum").fetchone()[0] != INCREMENTAL:
        # With too little disk space the file stays as it is: it works, but does not shrink.
        with contextlib.suppress(sqlite3.Error):
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("VACUUM")


def _file(connection: sqlite3.Connection) -> str:
    return str(connection.execute("PRAGMA database_list").fetchone()[2])


def _step(connection: sqlite3.Connection, number: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in MIGRATIONS[number]:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {number + 1}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
