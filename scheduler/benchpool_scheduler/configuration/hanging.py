"""Section ``hanging`` of ``benchpool.yaml``: when a job counts as hanging."""

from __future__ import annotations

from benchpool_scheduler.configuration.nodes import Item
from benchpool_scheduler.contract.hanging import IfHanging
from benchpool_scheduler.core.lifecycle.hangs import LEAST_S, MOST_S, HangRule
from benchpool_scheduler.phrases import exactly

SECTION = ("after_s", "act")


def rule(item: Item) -> HangRule:
    """Parse the section ``hanging``. Errors: InvalidInput."""
    keys = {key: entry for key, entry in item.entries(SECTION).items() if not entry.is_null()}
    act = IfHanging.TELL
    if "act" in keys:
        word = keys["act"].text()
        if word not in frozenset(map(str, IfHanging)):
            keys["act"].wrong(f"is {word!r}; write {', '.join(IfHanging)}.")
        act = IfHanging(word)
    after_s = keys["after_s"].number(LEAST_S, MOST_S) if "after_s" in keys else None
    return HangRule(after_s, act)


def in_words(rule: HangRule) -> str:
    """Return a rule in words.

    >>> in_words(HangRule()), in_words(HangRule(1800.0, IfHanging.REQUEUE))
    ('only jobs that request it', 'after 30 min of silence: requeue')
    """
    if rule.after_s is None:
        return "only jobs that request it"
    return f"after {exactly(rule.after_s)} of silence: {rule.act}"
