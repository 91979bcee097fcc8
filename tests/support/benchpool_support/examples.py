"""How many random examples the property tests draw, and which ones.

- ``repeatable``, unless another one is asked for: the same examples on every machine.
- ``fast``: a tenth of them, for ``make test-fast``.
- ``soak``: new ones each time; ``make soak`` prints the seed.
"""

from __future__ import annotations

from hypothesis import settings

WHOLE = 100
"""Examples of a property test that names no number."""

settings.register_profile(
    "repeatable", max_examples=WHOLE, derandomize=True, deadline=None, database=None
)
settings.register_profile("fast", settings.get_profile("repeatable"), max_examples=WHOLE // 10)
settings.register_profile("soak", max_examples=WHOLE, deadline=None, database=None, print_blob=True)
settings.load_profile("repeatable")


def examples(number: int) -> int:
    """Return how many examples a test draws that wants ``number``: fewer of them in a fast run.

    >>> examples(300) == 300 * settings().max_examples // WHOLE
    True
    """
    return max(1, number * settings().max_examples // WHOLE)
