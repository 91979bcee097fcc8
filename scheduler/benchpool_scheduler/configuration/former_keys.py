"""Keys of ``benchpool.yaml`` that were renamed. The former ones are read until the next release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from benchpool_scheduler.configuration.nodes import Item

PRESENT = {"each": "personal_projects", "serves": "purpose"}
"""Present key of each former one."""
LASTING = frozenset({"serves"})
"""Former keys that stay valid without a warning: other programs write them."""


def renamed(keys: Mapping[str, Item]) -> dict[str, Item]:
    """Return a mapping by its present keys. Errors: InvalidInput if a key has both names."""
    found: dict[str, Item] = {}
    for key, item in keys.items():
        now = PRESENT.get(key, key)
        if now in found:
            item.wrong(f"and {now} are two names of one key; keep `{now}`.")
        found[now] = item
    return found


def warnings(items: Iterable[Item]) -> tuple[str, ...]:
    """Return a warning for each former key in mappings."""
    return tuple(
        f"{item.path} is now called `{PRESENT[key]}`. Rename it: the next release rejects `{key}`."
        for mapping in items
        for key, item in mapping.entries().items()
        if key in PRESENT.keys() - LASTING
    )
