"""Hub group property ``benchpool``: build quota of the group's members (R2).

The spawner and the scheduler read it. The Hub's page stores typed values as text, and its API
stores JSON. Both are accepted, ``{"build_quota": 2}`` and ``"{\\"build_quota\\": \\"2\\"}"``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

NAME = "benchpool"
QUOTA = "build_quota"
MOST = 1_000_000


class GroupQuota(NamedTuple):
    """Build quota from a group's property.

    Attributes:
        gpus: Build quota of each member; None where the property sets none.
        problem: Why the property cannot be read, as a sentence for administrators; it then sets
        none.
    """

    gpus: int | None = None
    problem: str | None = None


def group_quota(group: str, properties: Mapping[str, object] | None) -> GroupQuota:
    """Return the build quota from the properties of a group.

    An administrator's mistake must not lock the group out, so an unreadable property counts as not
    set.

    >>> group_quota("lab", {"benchpool": '{"build_quota": 2}'})
    GroupQuota(gpus=2, problem=None)
    >>> group_quota("lab", {"other": 1})
    GroupQuota(gpus=None, problem=None)
    >>> group_quota("lab", {"benchpool": "two"}).problem[:56]
    'The property benchpool of the group lab cannot be read ('
    """
    raw = (properties or {}).get(NAME)
    if raw in (None, "", {}):
        return GroupQuota()
    value = _json(raw)
    quota = value.get(QUOTA) if isinstance(value, Mapping) else None
    if isinstance(quota, str) and quota.strip().isdecimal():
        quota = _json(quota.strip())
    if isinstance(quota, int) and not isinstance(quota, bool) and 0 <= quota <= MOST:
        return GroupQuota(quota)
    shown = raw if isinstance(raw, str) else msgspec.json.encode(raw).decode()
    return GroupQuota(
        problem=f"The property {NAME} of the group {group} cannot be read ({shown[:100]!r}) and "
        f'sets no build quota. On the Hub\'s page for groups, give it the value {{"{QUOTA}": 2}} '
        f"with the number of GPUs, a whole number from 0 to {MOST:,}."
    )


def _json(raw: object) -> object:
    if not isinstance(raw, str):
        return raw
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError:
        return None
