"""Numbers of random examples for the property tests, and how they are chosen.

- ``repeatable``, the default: the same examples on every machine.
- ``fast``: a tenth of them, for ``make test-fast``.
- ``soak``: new ones each time; ``make soak`` prints the seed.

Hypothesis also draws numbers that it reads in our modules. The set of imported modules depends on
the tests that the process ran before. The first two profiles therefore do without these numbers, so
that their examples do not differ between runs.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

WHOLE = 100
"""Examples of a property test that names no number."""

settings.register_profile(
    "repeatable",
    max_examples=WHOLE,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],  # a slow machine is no failure
)
settings.register_profile("fast", settings.get_profile("repeatable"), max_examples=WHOLE // 10)
settings.register_profile(
    "soak",
    max_examples=WHOLE,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repeatable")

_NO_CONSTANTS = Constants()
_constants_of_imported_modules = providers._get_local_constants


def _local_constants() -> Constants:
    return _NO_CONSTANTS if settings().derandomize else _constants_of_imported_modules()


providers._get_local_constants = _local_constants


def examples(number: int) -> int:
    """Return the number of examples for a test that wants ``number``, fewer in a fast run.

    >>> examples(300) == 300 * settings().max_examples // WHOLE
    True
    """
    return max(1, number * settings().max_examples // WHOLE)
