"""Access to the libraries of values, only if they are imported."""

from __future__ import annotations

import sys
from typing import Any


def library(name: str) -> Any:
    """Return an imported module, or None: then no value of it exists either."""
    return sys.modules.get(name)


def is_one_of(value: Any, name: str, *classes: str) -> bool:
    """Return whether a value's type is exactly one of these classes of an imported library.

    >>> import fractions
    >>> is_one_of(fractions.Fraction(1), "fractions", "Fraction"), is_one_of(1, "nothing", "int")
    (True, False)
    """
    module = library(name)
    return module is not None and type(value) in [getattr(module, each, None) for each in classes]
