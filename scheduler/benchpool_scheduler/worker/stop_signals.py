"""Signals to a supervisor, which request a stop even if no file can be written.

``LOOK`` announces ``stop.json``. The others carry only the kind of stop: the grace period is then
that of the worker's start. A supervisor lists the supported signals in ``process.json``
(``heeds``), because one of an earlier version would be killed by them.
"""

from __future__ import annotations

import signal

LOOK = signal.SIGUSR1
WORDLESS: dict[str, int] = {"cancel": signal.SIGUSR2, "pause": signal.SIGRTMIN + 4}

HEEDS = sorted(WORDLESS)
"""Supported kinds, as a supervisor writes them to its record."""


def kind_of(signals: bytes) -> str | None:
    """Return the strongest stop among received signals, or None.

    >>> kind_of(bytes([WORDLESS["pause"], WORDLESS["cancel"]])), kind_of(bytes([LOOK]))
    ('cancel', None)
    """
    return next((kind for kind in ("cancel", "pause") if WORDLESS[kind] in signals), None)
