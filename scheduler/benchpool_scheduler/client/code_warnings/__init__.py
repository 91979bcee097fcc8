"""Warnings about code that is likely to fail in a job, given before it is sent."""

from benchpool_scheduler.client.code_warnings.of_sent import (
    CodeWarning,
    of_pieces,
    of_script,
    of_submission,
)
from benchpool_scheduler.client.code_warnings.sources import piece_of_source
from benchpool_scheduler.client.imports.files_above import SentFolder

__all__ = [
    "CodeWarning",
    "SentFolder",
    "of_pieces",
    "of_script",
    "of_submission",
    "piece_of_source",
]
