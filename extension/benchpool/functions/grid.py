"""Combinations of values, as one dictionary of arguments each."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any


def grid(**values: object) -> list[dict[str, Any]]:
    """Return all combinations, with the last name changing fastest.

    A string, a mapping or a value that is not iterable counts as one value.

    >>> grid(lr=[0.1, 0.2], seed=range(2))  # doctest: +NORMALIZE_WHITESPACE
    [{'lr': 0.1, 'seed': 0}, {'lr': 0.1, 'seed': 1},
     {'lr': 0.2, 'seed': 0}, {'lr': 0.2, 'seed': 1}]
    >>> grid(lr=0.1, name="a")
    [{'lr': 0.1, 'name': 'a'}]
    """
    many = [
        list(each)
        if isinstance(each, Iterable) and not isinstance(each, (str, bytes, Mapping))
        else [each]
        for each in values.values()
    ]
    return [dict(zip(values, each)) for each in itertools.product(*many)]  # noqa: B905 (Python 3.9)
