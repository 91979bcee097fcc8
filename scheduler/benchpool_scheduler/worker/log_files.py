"""Files of a log with a size limit: its head and tail are kept, the middle is dropped.

``log`` holds the beginning of the stream, up to half of the limit. The rest is written to segments
named by their offset in the stream (``log.00000000000033554432``), of which only the newest are
kept. A reader needs only the names, and an offset always means the same byte.
"""

from __future__ import annotations

import struct

HEAD = "log"
PREFIX = "log."
BOUND = 64 * 1024 * 1024
"""Default size limit of a log, in bytes."""

SEGMENTS = 8
"""Number of segments that make up the tail."""

MARKS = "marks"
MARK = struct.Struct("<dq")
"""Time of a write (seconds since the epoch) and its offset; the file is a sequence of these."""

FINE_MARKS = 65_536
FINE_S = 1.0
COARSE_S = 60.0
"""Intervals between marks, in seconds: for the first 18 hours of output, and afterwards."""


def mark_interval(index: int) -> float:
    """Return the interval of writes that the mark with this index covers, in seconds."""
    return FINE_S if index < FINE_MARKS else COARSE_S


def segment_name(offset: int) -> str:
    """Return the file name of the segment that begins at ``offset``."""
    return f"{PREFIX}{offset:020d}"
