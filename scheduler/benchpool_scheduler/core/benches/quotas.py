"""Arithmetic of benches: each user's quota (R2) and the GPUs kept for benches (R3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchpool_scheduler.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class EffectiveQuota:
    """Limit on the GPUs that a user's servers hold together, and the rule that sets it."""

    quota: int
    rule: str


def effective_quota(
    user: str,
    groups: Mapping[str, int | None],
    *,
    user_settings: Mapping[str, int],
    group_settings: Mapping[str, int],
    default: int,
) -> EffectiveQuota:
    """Return a user's build quota: user setting, group property, group setting, default (R2).

    The first kind that is set applies. With several groups the largest value of that kind counts,
    even if a later kind has a larger one.

    Args:
        groups: The user's groups, each with its Hub property, or None if it has none.

    >>> rules = dict(user_settings={"susan": 2}, group_settings={"staff": 1}, default=0)
    >>> effective_quota("susan", {"staff": 4}, **rules)
    EffectiveQuota(quota=2, rule='user susan')
    >>> effective_quota("joe", {"staff": 4}, **rules)
    EffectiveQuota(quota=4, rule='property of group staff')
    >>> effective_quota("joe", {"staff": None, "guests": None}, **rules)
    EffectiveQuota(quota=1, rule='group staff')
    """
    if user in user_settings:
        return EffectiveQuota(user_settings[user], f"user {user}")
    properties = {name: quota for name, quota in groups.items() if quota is not None}
    if properties:
        quota, name = _largest(properties)
        return EffectiveQuota(quota, f"property of group {name}")
    settings = {name: group_settings[name] for name in groups if name in group_settings}
    if settings:
        quota, name = _largest(settings)
        return EffectiveQuota(quota, f"group {name}")
    return EffectiveQuota(default, "default")


def _largest(quotas: Mapping[str, int]) -> tuple[int, str]:
    name = min(quotas, key=lambda name: (-quotas[name], name))
    return quotas[name], name


def keep_free(
    quotas: Iterable[int], *, reserve: int | None, leased: int, gpus: int, oversubscribe: bool
) -> int:
    """Return how many GPUs must stay free for benches now (R3).

    Args:
        quotas: Build quotas of the users who may start servers.
        reserve: GPUs set aside, or None for the sum of the quotas.
        leased: Build GPUs that are held now.
        gpus: All GPUs that serve benches.
        oversubscribe: Allow the quotas or the reserve to exceed ``gpus``.

    Raises:
        InvalidInput: The quotas or the reserve exceed ``gpus``, and ``oversubscribe`` is off.

    >>> keep_free([1, 1, 1], reserve=None, leased=2, gpus=9, oversubscribe=False)
    1
    >>> keep_free([4, 4], reserve=None, leased=0, gpus=6, oversubscribe=False)
    Traceback (most recent call last):
    ...
    benchpool_scheduler.errors.InvalidInput: the build quotas add up to 8 GPUs and the pool has 6; \
lower them, or set build.oversubscribe to true
    """
    promised = sum(quotas)
    aside = promised if reserve is None else reserve
    if max(promised, aside) > gpus and not oversubscribe:
        what = "the build quotas add up to" if promised > gpus else "build.reserve sets aside"
        raise InvalidInput(
            f"{what} {max(promised, aside)} GPUs and the pool has {gpus}; lower them, or set "
            "build.oversubscribe to true",
            code="build-oversubscribed",
            field="build",
            numbers={"reserved": max(promised, aside), "gpus": gpus},
        )
    return max(0, min(aside, gpus) - leased)
