"""Signals to a supervisor. A stop gets through even where no file can be written.

``LOOK`` says that ``stop.json`` is there. The others say the kind of stop alone: its grace is then
the one that the worker was started with. A supervisor says in ``process.json`` (``heeds``) that it
knows them, because one of an earlier version would die of them.
"""

from __future__ import annotations

import signal

LOOK = signal.SIGUSR1
WORDLESS: dict[str, int] = {"cancel": signal.SIGUSR2, "pause": signal.SIGRTMIN + 4}

HEEDS = sorted(WORDLESS)
"""What a supervisor writes of itself."""


def kind_of(signals: bytes) -> str | None:
    """Return the strongest stop among signals that came; None for none.

    >>> kind_of(bytes([WORDLESS["pause"], WORDLESS["cancel"]])), kind_of(bytes([LOOK]))
    ('cancel', None)
    """
    return next((kind for kind in ("cancel", "pause") if WORDLESS[kind] in signals), None)
