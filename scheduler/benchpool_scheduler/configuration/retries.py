"""Section ``retries`` of ``benchpool.yaml``: retries after failures."""

from __future__ import annotations

from collections.abc import Mapping

from benchpool_scheduler.configuration.nodes import Item
from benchpool_scheduler.contract.causes import MOST_RETRIES, EndCause
from benchpool_scheduler.core.lifecycle.retries import (
    FAILURES,
    MOST_WAIT_S,
    RetryRules,
    SiteRule,
)

SECTION = {cause.replace("-", "_"): cause for cause in FAILURES}
"""Causes by the keys of the section."""
RULE = ("times", "pause_s", "avoid_s")


def policy(item: Item) -> RetryRules:
    """Parse the section ``retries``. Errors: InvalidInput."""
    entries = item.entries(SECTION)
    return RetryRules(
        {SECTION[key]: _rule(entry) for key, entry in entries.items() if not entry.is_null()}
    )


def _rule(item: Item) -> SiteRule:
    keys = item.entries(RULE)
    given = {key: entry for key, entry in keys.items() if not entry.is_null()}
    return SiteRule(
        times=given["times"].whole(most=MOST_RETRIES) if "times" in given else None,
        pause_s=given["pause_s"].number(0, MOST_WAIT_S) if "pause_s" in given else None,
        avoid_s=given["avoid_s"].number(0, MOST_WAIT_S) if "avoid_s" in given else None,
    )


def rules(policy: RetryRules) -> Mapping[EndCause, tuple[int, float, float]]:
    """Return by cause the number of retries, the delay, and the time off the node, in seconds."""
    found = {}
    for cause in FAILURES:
        rule = policy.rule(cause)
        found[cause] = (rule.times or 0, rule.pause_s, rule.avoid_s)
    return found
