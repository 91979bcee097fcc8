"""Errors of a service of another version, which does not know a key sent by this client. Pure.

Request bodies are closed: a service refuses unknown keys. Keys are added and never removed, so a
key of this client that the service does not know was added after the service was built.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from benchpool_scheduler import __version__
from benchpool_scheduler.contract.operation import Call
from benchpool_scheduler.contract.options import OPTIONS
from benchpool_scheduler.errors import BenchpoolError, InvalidInput

UNKNOWN_KEY = "unknown-key"
"""Code of the refusal of an unknown key."""


def lacks_key(call: Call[Any], failed: BenchpoolError) -> bool:
    """Return whether the service does not know a key that this client has for the same call."""
    return failed.code == UNKNOWN_KEY and failed.field in _keys_of(call)


def lacking(
    call: Call[Any], failed: BenchpoolError, document: object, own: str = __version__
) -> InvalidInput:
    """Return the refusal of an unknown key, with versions and remedy.

    Args:
        document: OpenAPI document of the service. None if it could not be read.
        own: Version of this benchpool.

    >>> from benchpool_scheduler.contract import JobSubmission, ScriptEntry
    >>> from benchpool_scheduler.contract.operations import Operations
    >>> call = Operations.submit.call(JobSubmission(entry=ScriptEntry("train.py")))
    >>> refused = InvalidInput("There is no key if_hanging here.", field="if_hanging")
    >>> print(lacking(call, refused, {"info": {"version": "0.1.0"}}, "0.2.0").message)
    This service is older (0.1.0) than your benchpool (0.2.0) and does not know `if_hanging` \
(--if-hanging). Leave it out, or update the service.
    >>> print(lacking(call, refused, None, "0.2.0").message)
    This service does not know `if_hanging` (--if-hanging), which your benchpool (0.2.0) has. \
Leave it out, or update the service.
    """
    key = str(failed.field)
    which = f"`{key}`{_flag(key) if 'entry' in _keys_of(call) else ''}"
    there = version_in(document)
    end = "Leave it out, or update the service."
    if there is None:
        text = f"This service does not know {which}, which your benchpool ({own}) has. {end}"
    elif _order(there) < _order(own):
        text = (
            f"This service is older ({there}) than your benchpool ({own}) and does not know "
            f"{which}. {end}"
        )
    elif there == own:
        text = (
            f"This service has the version of your benchpool ({there}), but was built before "
            f"{which} was added, and does not know it. {end}"
        )
    else:
        text = (
            f"This service ({there}) does not know {which}, which your benchpool ({own}) has. "
            "Leave it out, or use a benchpool of the service's version."
        )
    return InvalidInput(
        text,
        code=UNKNOWN_KEY,
        field=failed.field,
        numbers={**failed.numbers, "service": there, "benchpool": own},
    )


def version_in(document: object) -> str | None:
    """Return the version in the service's OpenAPI document, or None.

    >>> version_in({"info": {"version": "0.1.0"}}), version_in({"info": []})
    ('0.1.0', None)
    """
    about = document.get("info") if isinstance(document, Mapping) else None
    version = about.get("version") if isinstance(about, Mapping) else None
    return (
        version
        if isinstance(version, str) and re.fullmatch(r"[0-9A-Za-z.+-]{1,40}", version)
        else None
    )


def _keys_of(call: Call[Any]) -> set[str]:
    """Return the names of all keys of a call, in its body and its query."""
    types = [it for it in (call.operation.body, call.operation.query) if it is not None]
    _, parts = msgspec.json.schema_components(types)
    return {key for part in parts.values() for key in part.get("properties", ())}


def _flag(key: str) -> str:
    """Return the ``submit`` option for a key, in parentheses. Empty if there is none."""
    flag = next((option.flag for option in OPTIONS if option.field == key), None)
    return "" if flag is None else f" ({flag})"


def _order(version: str) -> tuple[int, ...]:
    """Return the numbers of a release, for comparison.

    >>> _order("0.10.0") > _order("0.9.3"), _order("0.2.0.dev1+g12")
    (True, (0, 2, 0))
    """
    release = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, release[0].split("."))) if release else ()
