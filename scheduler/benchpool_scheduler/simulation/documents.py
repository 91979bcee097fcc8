"""Read YAML documents with a closed set of keys; errors suggest the nearest known key."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import yaml

from benchpool_scheduler.errors import InvalidInput

T = TypeVar("T")

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""YAML loader: PyYAML's C loader, included in its wheels, needs a ninth of the time."""


def load(path: Path) -> list[object]:
    """Return the documents of a file.

    Raises:
        InvalidInput: The file cannot be read or is not valid YAML.
    """
    try:
        with path.open(encoding="utf-8") as file:
            return [one for one in yaml.load_all(file, Loader=LOADER) if one is not None]
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}", field=str(path)) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        where = f", line {line + 1}" if line is not None else ""
        raise InvalidInput(f"{path}{where} is not YAML; correct it") from error


@dataclass(frozen=True, slots=True)
class Mapped:
    """Mapping of a document, with its position for error messages.

    Attributes:
        where: Position for messages, e.g. ``cases.yaml, case borrow, job a``.
    """

    values: Mapping[str, object]
    where: str

    @classmethod
    def of(cls, value: object, where: str, keys: Iterable[str]) -> Mapped:
        """Return ``value`` as a ``Mapped``. Errors: InvalidInput for no mapping or an unknown
        key.
        """
        if not isinstance(value, Mapping):
            raise InvalidInput(f"{where} must be a mapping of keys to values, not {value!r}")
        known = list(keys)
        for key in value:
            if key not in known:
                near = difflib.get_close_matches(str(key), known, n=1, cutoff=0.0)
                hint = f"; the nearest known key is {near[0]}" if near else ""
                raise InvalidInput(f"unknown key {key} in {where}{hint}", field=str(key))
        return cls(dict(value), where)

    def wrong(self, key: str, wanted: str) -> InvalidInput:
        """Return the error for a value that the key does not accept."""
        value = self.values.get(key)
        return InvalidInput(f"{key} in {self.where} must be {wanted}, not {value!r}", field=key)

    def need(self, key: str) -> None:
        """Check that the key is present. Errors: InvalidInput."""
        if key not in self.values:
            raise InvalidInput(f"{self.where} lacks the key {key}; add it", field=key)

    def _get(self, key: str, default: T, check: Callable[[object], bool], wanted: str) -> T:
        value = self.values.get(key, default)
        if value is default or check(value):
            return value  # type: ignore[return-value]
        raise self.wrong(key, wanted)

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text; required if there is no default. A number is returned as its digits."""
        if default is None:
            self.need(key)
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
            raise self.wrong(key, "a text")
        return str(value)

    def flag(self, key: str, default: bool) -> bool:
        """Return a boolean."""
        return self._get(key, default, lambda v: isinstance(v, bool), "true or false")

    def whole(self, key: str, default: int, least: int = 0) -> int:
        """Return an integer of at least ``least``."""
        return self._get(key, default, lambda v: is_whole(v, least), _whole(least))

    def number(self, key: str, default: float) -> float:
        """Return a non-negative number."""
        return self._get(key, default, is_number, "a number from 0")

    def maybe(self, key: str) -> float | None:
        """Return a number, or None where it is null or left out."""
        return self._get(key, None, is_number, "a number from 0, or null")

    def maybe_whole(self, key: str) -> int | None:
        """Return a whole number, or None where it is null or left out."""
        return self._get(key, None, lambda v: is_whole(v, 0), f"{_whole(0)}, or null")

    def texts(self, key: str) -> list[str]:
        """Return a list of texts; empty when left out."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(v, str | int) for v in value):
            raise self.wrong(key, "a list of names")
        return [str(v) for v in value]

    def items(self, key: str) -> list[object]:
        """Return a list; empty when left out."""
        value = self.values.get(key, [])
        if not isinstance(value, list):
            raise self.wrong(key, "a list")
        return value

    def choice(self, key: str, choices: Iterable[str], default: str) -> str:
        """Return one of the allowed words."""
        words = list(choices)
        return self._get(key, default, lambda v: v in words, f"one of {', '.join(words)}")


def is_whole(value: object, least: int) -> bool:
    """Return whether the value is an integer of at least ``least``."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def is_number(value: object) -> bool:
    """Return whether the value is a finite, non-negative number."""
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    return numeric and 0 <= value < float("inf")  # type: ignore[operator]


def _whole(least: int) -> str:
    return f"a whole number from {least}"


def whole_seconds(limit: float | None) -> int | None:
    """Return the time limit of a job in whole seconds, rounded up.

    >>> whole_seconds(59.5), whole_seconds(None)
    (60, None)
    """
    return None if limit is None else math.ceil(limit)
