"""Access to the profiles of ``profile_list``, and messages about wrong ones (pure).

A profile may have ``allowed_groups`` and ``allowed_users``. Without either it is open to all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchpool_scheduler.errors import InvalidInput, Refused
from benchpool_spawner.refusal import StartRefused

Profile = Mapping[str, Any]


def open_to(user: str, groups: frozenset[str], profiles: Sequence[Profile]) -> list[Profile]:
    """Return the profiles that a user may choose, in their order.

    Raises:
        Refused: There are profiles, and none is open to the user.

    >>> large = {"display_name": "8 GPUs", "allowed_groups": ["staff"]}
    >>> [p["display_name"] for p in open_to("susan", frozenset({"staff"}), [large])]
    ['8 GPUs']
    >>> open_to("joe", frozenset(), [large])
    Traceback (most recent call last):
    ...
    benchpool_scheduler.errors.Refused: None of the 1 server profiles is open to joe. Ask an \
administrator to let you use one.
    """
    mine = [profile for profile in profiles if _is_open(profile, user, groups)]
    if profiles and not mine:
        who = f"you, or one of your groups ({', '.join(sorted(groups))})," if groups else "you"
        raise Refused(
            f"None of the {len(profiles)} server profiles is open to {user}. Ask an administrator "
            f"to let {who} use one.",
            code="no-profile",
            field="profile",
            numbers={"profiles": len(profiles)},
        )
    return mine


def check_choices(chosen: Mapping[str, Any], profiles: Sequence[Profile]) -> None:
    """Refuse a choice that is not among the options of the chosen profile.

    Args:
        profiles: Profiles as completed by KubeSpawner: each with a slug, one the default.

    Raises:
        InvalidInput: The choice is unknown. The message names the choices.

    >>> image = {"choices": {"a": {}, "b": {}}}
    >>> small = {"slug": "small", "default": True, "profile_options": {"image": image}}
    >>> check_choices({"image": "b"}, [small])
    >>> check_choices({"image": "c"}, [small])
    Traceback (most recent call last):
    ...
    benchpool_scheduler.errors.InvalidInput: image has no choice 'c'; there are a, b
    """
    name = chosen.get("profile")
    profile = next((p for p in profiles if (p["slug"] == name if name else p.get("default"))), {})
    for option, about in (profile.get("profile_options") or {}).items():
        choices = about.get("choices") or {}
        choice, unlisted = chosen.get(option), chosen.get(f"{option}--unlisted-choice")
        if unlisted:
            continue
        if not choice and not choices:
            raise InvalidInput(f"{option} has no default; choose one", field=option)
        if choice and choice not in choices:
            raise InvalidInput(
                f"{option} has no choice {str(choice)[:60]!r}; there are {', '.join(choices)}",
                field=option,
            )


def wrong_choice(error: Exception) -> StartRefused:
    """Return the refusal of options that do not exist."""
    return StartRefused(
        f"These server options cannot be used: {error}. Choose on the start page.",
        reason="gpu-options",
        status_code=400,
    )


def site_fault(error: Exception) -> StartRefused:
    """Return the refusal for a fault in an administrator's profiles, as shown to the user.

    >>> print(site_fault(ZeroDivisionError("division by zero")))
    The configuration of the server profiles is invalid (ZeroDivisionError). Your choice is not \
the cause. Ask an administrator; the Hub's log shows where it fails.
    """
    return StartRefused(
        f"The configuration of the server profiles is invalid ({type(error).__name__}). Your "
        "choice is not the cause. Ask an administrator; the Hub's log shows where it fails.",
        reason="site-settings",
        status_code=500,
    )


def _is_open(profile: Profile, user: str, groups: frozenset[str]) -> bool:
    users, some = profile.get("allowed_users"), profile.get("allowed_groups")
    if users is None and some is None:
        return True
    return user in (users or ()) or not groups.isdisjoint(some or ())
