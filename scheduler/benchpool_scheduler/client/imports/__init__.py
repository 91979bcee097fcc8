"""Checks whether the imports of submitted code work with the Python that will run it.

``missing`` reads the code and the user's own files that it imports, and queries that Python for the
other modules. It runs neither.
"""

from benchpool_scheduler.client.imports.asking import job_environ
from benchpool_scheduler.client.imports.checking import MissingModule, missing
from benchpool_scheduler.client.imports.of_entries import missing_of, missing_of_script
from benchpool_scheduler.client.imports.reading import Piece
from benchpool_scheduler.client.imports.unseen import IMAGE, unchecked, unseen_here

__all__ = [
    "IMAGE",
    "MissingModule",
    "Piece",
    "job_environ",
    "missing",
    "missing_of",
    "missing_of_script",
    "unchecked",
    "unseen_here",
]
