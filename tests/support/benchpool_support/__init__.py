"""Builders and stand-ins for tests and benchmarks, which are never part of the wheel."""

from pathlib import Path

FOLDER = str(Path(__file__).resolve().parents[1])
"""Folder for the ``PYTHONPATH`` of a process that imports this package."""
