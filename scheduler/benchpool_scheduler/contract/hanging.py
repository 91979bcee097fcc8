"""What is done with a job that hangs: the closed list."""

from __future__ import annotations

from enum import StrEnum


class IfHanging(StrEnum):
    """What follows when a running job shows no sign of life, as ``--if-hanging`` names it."""

    TELL = "tell"
    """Its owner is told; it runs on."""
    REQUEUE = "requeue"
    """It is stopped and tried again, as after a failure."""
    NOTHING = "nothing"
    """It is not looked at."""
