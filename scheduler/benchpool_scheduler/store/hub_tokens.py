"""How a restored copy of the Hub's database changes tokens, users and administrators.

A revoked token is a row that no longer exists, so only the replaced database shows the revocation.
Both files are only read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchpool_scheduler.phrases import count, is_are, visible

MOST_NAMED = 20
"""Maximum number of tokens or users that one sentence names."""
MOST_NOTE = 60
"""Maximum number of characters shown of a token's note."""

_TOKENS = """
SELECT t.hashed, t.id, u.name, COALESCE(t.note, ''), COALESCE(t.created, ''), t.client_id
FROM api_tokens t JOIN users u ON u.id = t.user_id
WHERE t.expires_at IS NULL OR t.expires_at > ?
"""
_USERS = "SELECT name, admin FROM users"
_MADE_BY_USERS = "jupyterhub"
"""``client_id`` of tokens that are not a login of a browser or an application."""


@dataclass(frozen=True, slots=True)
class HubToken:
    """Valid token of a user.

    Attributes:
        login: Whether it belongs to a login of a browser or an application (OAuth).
    """

    id: int
    user: str
    note: str
    created: str
    login: bool


@dataclass(frozen=True, slots=True)
class HubAccess:
    """Access that a database of the Hub grants; tokens by their hashes."""

    tokens: dict[str, HubToken]
    users: frozenset[str]
    administrators: frozenset[str]


def read(database: Path, now: float) -> HubAccess | None:
    """Return the access that a database grants, or None when it cannot be read.

    Args:
        now: Time in seconds since the epoch; tokens that have expired by then are left out.
    """
    if not database.is_file():
        return None
    valid = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    try:
        db = sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)
        try:
            tokens = db.execute(_TOKENS, (valid,)).fetchall()
            users = db.execute(_USERS).fetchall()
        finally:
            db.close()
    except sqlite3.Error:
        return None
    return HubAccess(
        {
            str(hashed): HubToken(
                id_, str(user), str(note), str(made)[:10], client != _MADE_BY_USERS
            )
            for hashed, id_, user, note, made, client in tokens
        },
        frozenset(str(name) for name, _ in users),
        frozenset(str(name) for name, admin in users if admin),
    )


def again_valid(replaced: HubAccess | None, copy: HubAccess | None) -> list[HubToken]:
    """Return the tokens that only the copy has, sorted by user."""
    known = {} if replaced is None else replaced.tokens
    there = {} if copy is None else copy.tokens
    new = (token for hashed, token in there.items() if hashed not in known)
    return sorted(new, key=lambda one: (one.user, one.id))


def sentences(replaced: HubAccess | None, copy: HubAccess | None) -> list[str]:
    """Return sentences about access that changes when the copy replaces the database.

    Args:
        replaced: Access by the replaced database; None when it is lost or cannot be read.
        copy: Access by the copy; None when it cannot be read.
    """
    if copy is None:
        return [
            "It is unknown which tokens are valid now: the copy's list of tokens is unreadable."
        ]
    again = again_valid(replaced, copy)
    if replaced is None:
        return _unknown(again)
    gone = again_valid(copy, replaced)
    removed = sorted(copy.users - replaced.users)
    raised = sorted(copy.administrators - replaced.administrators)
    return [
        *_again(again),
        *_gone(gone),
        *_users("removed since the copy was made", removed, "in the Hub"),
        *_users("without administrator rights until now", raised, "in that role"),
    ]


_REVOKE = (
    "Each user revokes them on the Hub's page Token (/hub/token); an administrator does so with "
    "DELETE /hub/api/users/USER/tokens/ID."
)


def _unknown(tokens: Sequence[HubToken]) -> list[str]:
    if not tokens:
        return []
    return [
        "It is unknown which tokens were revoked since the copy was made: the Hub's database was "
        f"lost or unreadable. {count(len(tokens), 'token')} of the copy {is_are(len(tokens))} "
        f"valid: {_listed(tokens, _named)}. {_REVOKE}"
    ]


def _again(tokens: Sequence[HubToken]) -> list[str]:
    if not tokens:
        return []
    return [
        f"{count(len(tokens), 'token')} that had been revoked or had ended since the copy was made "
        f"{is_are(len(tokens))} valid again: {_listed(tokens, _named)}. {_REVOKE}"
    ]


def _gone(tokens: Sequence[HubToken]) -> list[str]:
    if not tokens:
        return []
    return [
        f"{count(len(tokens), 'token')} made since the copy was made {is_are(len(tokens))} no "
        f"longer valid: {_listed(tokens, _named)}. Make new ones on the Hub's page Token "
        "(/hub/token)."
    ]


def _users(before: str, names: Sequence[str], now: str) -> list[str]:
    if not names:
        return []
    return [
        f"{count(len(names), 'user')} {before} {is_are(len(names))} {now} again: "
        f"{_listed(names, visible)}. Change this on the Hub's page Admin (/hub/admin)."
    ]


def _listed(found: Sequence[HubToken] | Sequence[str], named: Callable[..., str]) -> str:
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return ", ".join(named(one) for one in found[:MOST_NAMED]) + more


def _named(token: HubToken) -> str:
    """Return a token in words, with its ID in the Hub's API.

    >>> _named(HubToken(7, "susan", "laptop", "2026-11-02", login=False))
    'a7 of susan ("laptop", made 2026-11-02)'
    """
    note = "a login" if token.login else f'"{visible(token.note)[:MOST_NOTE]}"'
    return f"a{token.id} of {visible(token.user)} ({note}, made {token.created})"
