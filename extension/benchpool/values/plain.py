"""Standard library values as JSON: containers by their items, other values as strings."""

from __future__ import annotations

import argparse
import base64
import collections
import datetime
import decimal
import fractions
import pathlib
import types
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

INLINE = (type(None), bool, float, str)
"""Types that JSON has; also integers below ``LONG``."""
LONG = 1 << 63
"""Limit from which integers are written in hexadecimal: Python reads at most 4,300 decimal
digits.
"""


class ScalarKind(NamedTuple):
    """Type whose values are one piece of JSON."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


class ContainerKind(NamedTuple):
    """Type whose values contain other values.

    Attributes:
        items: Returns the content, in pieces of equal form.
        fill: Puts the pieces into an empty container.
        empty: Makes an empty container from ``more``; None if it is made from its items at once.
        more: Returns further properties as JSON.
    """

    items: Callable[[Any], Any]
    fill: Callable[[Any, list[Any]], Any]
    empty: Callable[[Any], Any] | None
    more: Callable[[Any], Any] = lambda value: None


FACTORIES = {each.__name__: each for each in (list, dict, set, int, float, str, tuple)}


def _factory(value: Any) -> str | None:
    factory = value.default_factory
    if factory is not None and FACTORIES.get(getattr(factory, "__name__", "")) is not factory:
        raise TypeError("its default comes from a custom function")
    return None if factory is None else str(factory.__name__)


def _zone(zone: Any) -> Any:
    if zone is None or type(zone) is datetime.timezone:
        return None
    if getattr(zone, "key", None):
        return zone.key
    raise TypeError("its time zone has no name")


def _moment(value: Any) -> Any:
    return [value.isoformat(), _zone(value.tzinfo), value.fold]


def _read_moment(kind: Any) -> Callable[[Any], Any]:
    def read(text: Any) -> Any:
        found = kind.fromisoformat(text[0])
        if text[1] is not None:
            import zoneinfo

            found = found.replace(tzinfo=zoneinfo.ZoneInfo(text[1]))
        return found.replace(fold=text[2])

    return read


def _bytes(kind: Any) -> ScalarKind:
    return ScalarKind(
        lambda value: base64.b64encode(value).decode(), lambda text: kind(base64.b64decode(text))
    )


SCALARS: dict[type, ScalarKind] = {
    int: ScalarKind(hex, lambda text: int(text, 16)),
    complex: ScalarKind(lambda value: [value.real, value.imag], lambda parts: complex(*parts)),
    bytes: _bytes(bytes),
    bytearray: _bytes(bytearray),
    range: ScalarKind(
        lambda value: [str(each) for each in (value.start, value.stop, value.step)],
        lambda parts: range(*map(int, parts)),
    ),
    type(...): ScalarKind(lambda value: None, lambda text: ...),
    datetime.datetime: ScalarKind(_moment, _read_moment(datetime.datetime)),
    datetime.time: ScalarKind(_moment, _read_moment(datetime.time)),
    datetime.date: ScalarKind(str, datetime.date.fromisoformat),
    datetime.timedelta: ScalarKind(
        lambda value: [value.days, value.seconds, value.microseconds],
        lambda parts: datetime.timedelta(*parts),
    ),
    decimal.Decimal: ScalarKind(str, decimal.Decimal),
    fractions.Fraction: ScalarKind(str, fractions.Fraction),
    uuid.UUID: ScalarKind(str, uuid.UUID),
    pathlib.PosixPath: ScalarKind(str, pathlib.Path),
    pathlib.PurePosixPath: ScalarKind(str, pathlib.PurePosixPath),
}


def _list(value: Any) -> list[Any]:
    return list(value)


def _pairs(value: Any) -> list[list[Any]]:
    return [list(pair) for pair in value.items()]


def _attributes(value: Any) -> list[list[Any]]:
    return [list(pair) for pair in vars(value).items()]


def _extend(made: Any, items: list[Any]) -> Any:
    made.extend(items)
    return made


def _update(made: Any, items: list[Any]) -> Any:
    made.update(items)
    return made


def _put(made: Any, items: list[Any]) -> Any:
    for key, value in items:
        made[key] = value
    return made


def _set_attributes(made: Any, items: list[Any]) -> Any:
    vars(made).update(items)
    return made


CONTAINERS: dict[type, ContainerKind] = {
    list: ContainerKind(_list, _extend, lambda more: []),
    tuple: ContainerKind(_list, lambda made, items: tuple(items), None),
    set: ContainerKind(_list, _update, lambda more: set()),
    frozenset: ContainerKind(_list, lambda made, items: frozenset(items), None),
    dict: ContainerKind(_pairs, _put, lambda more: {}),
    collections.OrderedDict: ContainerKind(_pairs, _put, lambda more: collections.OrderedDict()),
    collections.Counter: ContainerKind(_pairs, _put, lambda more: collections.Counter()),
    collections.defaultdict: ContainerKind(
        _pairs,
        _put,
        lambda more: collections.defaultdict(None if more is None else FACTORIES[more]),
        _factory,
    ),
    collections.deque: ContainerKind(
        _list, _extend, lambda more: collections.deque(maxlen=more), lambda value: value.maxlen
    ),
    slice: ContainerKind(
        lambda value: [value.start, value.stop, value.step],
        lambda made, items: slice(*items),
        None,
    ),
    types.SimpleNamespace: ContainerKind(
        _attributes, _set_attributes, lambda more: types.SimpleNamespace()
    ),
    argparse.Namespace: ContainerKind(
        _attributes, _set_attributes, lambda more: argparse.Namespace()
    ),
}


def name_of(kind: type) -> str:
    """Return the name of a type in a document.

    >>> name_of(list), name_of(datetime.date)
    ('list', 'datetime.date')
    """
    module = kind.__module__.split("._")[0]  # for Python 3.13: pathlib._local
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


SCALARS_BY_NAME = {name_of(kind): each for kind, each in SCALARS.items()}
CONTAINERS_BY_NAME = {name_of(kind): each for kind, each in CONTAINERS.items()}
