"""Reasons why values of a notebook's kernel cannot be sent, found without writing them."""

from __future__ import annotations

import collections
import json
import sys
import types
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from benchpool.values import plain, untravelled
from benchpool.values.formats import FORMATS
from benchpool.values.frames import NEEDS_ARROW, needs_arrow
from benchpool.values.pickles import NO_CLOUDPICKLE

_WRITER = types.SimpleNamespace(states=False)


def of(names: Sequence[str], pickle: bool) -> str:
    """Return the reasons why names of this session cannot be sent, as JSON by name.

    A name that is not listed may still fail. This check finds kinds of values, not limits of a
    format.
    """
    namespace = sys.modules["__main__"].__dict__
    found = {name: _of_name(name, namespace, pickle) for name in names}
    return json.dumps({name: why for name, why in found.items() if why is not None})


def _of_name(name: str, namespace: dict[str, Any], pickle: bool) -> str | None:
    if name not in namespace:
        return f"{name} is not defined in this session"
    found = first(name, namespace[name])
    if found is None:
        return None
    never = untravelled.find(name, namespace[name])
    if never is not None:
        return f"{never[0]} is {never[1]}"
    if not pickle:
        return f"{found[0]} is {found[1]}"
    return None if find_spec("cloudpickle") else f"{name} is {NO_CLOUDPICKLE}"


def first(name: str, value: Any) -> tuple[str, str] | None:
    """Return the position and kind of the first part of a value without a safe format, or None.

    >>> first("run", {"log": [1, range(3)], "draw": print})
    ("run['draw']", 'a function; code is sent as cells')
    >>> first("run", {"log": [1, range(3)]}) is None
    True
    """
    waiting = collections.deque([(name, value)])
    seen: dict[int, Any] = {}
    while waiting and len(seen) < untravelled.LOOKED_AT:
        where, each = waiting.popleft()
        kind = type(each)
        if kind in plain.INLINE or kind in plain.SCALARS or id(each) in seen:
            continue
        seen[id(each)] = each
        container = plain.CONTAINERS.get(kind)
        if container is not None:
            waiting.extend(_held(where, each, container))
            continue
        why = _without_format(each)
        if why is not None:
            return where, why
    return None


def _held(where: str, value: Any, container: plain.ContainerKind) -> list[tuple[str, Any]]:
    if isinstance(value, dict) or hasattr(value, "__dict__"):
        return [
            (f"{where}{untravelled.step(value, key)}", item) for key, item in container.items(value)
        ]
    return [(f"{where}[{at}]", item) for at, item in enumerate(container.items(value))]


def _without_format(value: Any) -> str | None:
    taken = next((each.name for each in FORMATS if each.takes(value, _WRITER)), None)
    if taken is None:
        return untravelled.no_format(value, pickle=False)
    return needs_arrow(value) if taken in NEEDS_ARROW and not find_spec("pyarrow") else None
