"""A bounded log as files: its head and its tail are kept, the middle of a flood is dropped.

``log`` holds the stream's first half of the bound; what follows goes to segments named by their
offset in the stream (``log.00000000000033554432``), of which only the newest stay. So a reader
needs nothing but the names, and an offset means the same byte for ever.
"""

from __future__ import annotations

import struct

HEAD = "log"
PREFIX = "log."
BOUND = 64 * 1024 * 1024
"""Default bound of a log, bytes."""

SEGMENTS = 8
"""Number of segments that make up the tail."""

MARKS = "marks"
MARK = struct.Struct("<dq")
"""When a write happened (seconds since the epoch) and at which offset; one file of these."""

FINE_MARKS = 65_536
FINE_S = 1.0
COARSE_S = 60.0
"""At most one mark a second, for the first 18 hours of output; then one a minute."""


def mark_interval(index: int) -> float:
    """Return for how many seconds the mark with this index stands for the writes after it."""
    return FINE_S if index < FINE_MARKS else COARSE_S


def segment_name(offset: int) -> str:
    """Return the file name of the segment that begins at ``offset``."""
    return f"{PREFIX}{offset:020d}"
