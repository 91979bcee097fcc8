"""The libraries whose values are written: looked for among what is imported."""

from __future__ import annotations

import sys
from typing import Any


def library(name: str) -> Any:
    """Return an imported module, or None: then no value of it is there either."""
    return sys.modules.get(name)


def is_one_of(value: Any, name: str, *classes: str) -> bool:
    """Say whether a value's type is one of these classes themselves, of an imported library.

    >>> import fractions
    >>> is_one_of(fractions.Fraction(1), "fractions", "Fraction"), is_one_of(1, "nothing", "int")
    (True, False)
    """
    module = library(name)
    return module is not None and type(value) in [getattr(module, each, None) for each in classes]
