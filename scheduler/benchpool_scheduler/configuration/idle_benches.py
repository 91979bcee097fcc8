"""Section ``idle_benches`` of ``benchpool.yaml``: when idle benches are released."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date

from benchpool_scheduler.configuration.nodes import Item
from benchpool_scheduler.configuration.settings import IdleExemption, IdleRule
from benchpool_scheduler.phrases import exactly

TIMES = ("tell_s", "ask_s", "act_s")
SECTION = ("act", *TIMES, "keep_s", "keeps_a_day", "exempt")
EXEMPTION = ("who", "until", "why")
KINDS = ("group", "profile")
LEAST_S, MOST_S = 1.0, 30 * 86_400.0
SHORT_S = 900.0
"""Idle time below which a release probably hits a user on a short break, in seconds."""
MOST_EXEMPT = 1000


def rule(item: Item) -> IdleRule:
    """Parse the section ``idle_benches``. Errors: InvalidInput."""
    keys, usual = item.entries(SECTION), IdleRule()

    def seconds(key: str, usual_s: float) -> float:
        return keys[key].number(LEAST_S, MOST_S) if _given(keys, key) else usual_s

    found = IdleRule(
        act=keys["act"].flag() if "act" in keys else usual.act,
        tell_s=seconds("tell_s", usual.tell_s),
        ask_s=seconds("ask_s", usual.ask_s),
        act_s=seconds("act_s", usual.act_s),
        keep_s=seconds("keep_s", usual.keep_s),
        keeps_a_day=keys["keeps_a_day"].whole(most=100)
        if _given(keys, "keeps_a_day")
        else usual.keeps_a_day,
        exempt=tuple(_exemptions(keys["exempt"])) if _given(keys, "exempt") else (),
    )
    if not found.tell_s < found.ask_s < found.act_s:
        item.wrong(
            f"needs tell_s < ask_s < act_s; it has tell_s {found.tell_s:g}, ask_s {found.ask_s:g} "
            f"and act_s {found.act_s:g}. Make each longer than the one before."
        )
    return found


def warnings(rule: IdleRule) -> tuple[str, ...]:
    """Return warnings about settings that are allowed but probably not intended.

    >>> warnings(IdleRule(act=True, tell_s=10, ask_s=20, act_s=60))
    ('Benches are reclaimed after 1 min without use. That is short: users also read and think.',)
    """
    if not rule.act or rule.act_s >= SHORT_S:
        return ()
    return (
        f"Benches are reclaimed after {exactly(rule.act_s)} without use. That is short: users "
        "also read and think.",
    )


def _exemptions(item: Item) -> Iterator[IdleExemption]:
    for number, entry in enumerate(item.items()):
        if number >= MOST_EXEMPT:
            item.wrong(f"has more than {MOST_EXEMPT} entries; name groups.", limit=MOST_EXEMPT)
        keys = entry.entries(EXEMPTION)
        for key in ("who", "until"):
            if not _given(keys, key):
                entry.wrong(f"has no `{key}`; an exemption needs `who` and `until`, its last day.")
        why = keys["why"].text(200) if _given(keys, "why") else ""
        yield IdleExemption(_who(keys["who"]), _day(keys["until"]), why)


def _who(item: Item) -> str:
    text = item.text()
    kind, colon, name = text.partition(":")
    if colon and (kind not in KINDS or not name.strip()):
        item.wrong(f"is {text!r}; write a user's name, `group:NAME` or `profile:NAME`.")
    return text


def _day(item: Item) -> date:
    value = item.scalar()
    try:
        found = value if type(value) is date else date.fromisoformat(str(value))
    except ValueError:
        item.wrong(f"is {str(value)[:40]!r}; write its last day as 2026-12-31.")
    if not 1970 <= found.year < 9999:
        item.wrong(f"is {found}; write its last day as 2026-12-31.")
    return found


def _given(keys: Mapping[str, Item], key: str) -> bool:
    return key in keys and not keys[key].is_null()
