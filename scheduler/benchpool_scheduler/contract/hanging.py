"""Closed list of actions on a job that hangs."""

from __future__ import annotations

from enum import StrEnum


class IfHanging(StrEnum):
    """Action when a running job shows no activity, as named by ``--if-hanging``."""

    TELL = "tell"
    """The owner is notified. The job keeps running."""
    REQUEUE = "requeue"
    """The job is stopped and retried, as after a failure."""
    NOTHING = "nothing"
    """The job is not checked."""
