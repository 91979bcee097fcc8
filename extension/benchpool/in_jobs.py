"""``benchpool`` in a job whose Python lacks it: the parts that need only the standard library.

This is the package's ``__init__`` in the file that ``benchpool_scheduler.worker.job_package``
makes. If the job's Python has benchpool installed, that package is used as a whole instead. Works
on every Python from 3.9.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from typing import Any


def _installed() -> ModuleSpec | None:
    """Return the spec of a benchpool installed outside this module's file, or None."""
    own, before = os.path.dirname(os.path.dirname(__file__)), list(sys.path)
    sys.path[:] = [each for each in before if each != own]
    try:
        found = [finder.find_spec(__name__, None) for finder in sys.meta_path]
    finally:
        sys.path[:] = before
    return next((each for each in found if each is not None and each.has_location), None)


def _give_way() -> None:
    spec = _installed()
    if spec is not None and spec.loader is not None:
        sys.modules[__name__] = module = module_from_spec(spec)
        spec.loader.exec_module(module)


def __getattr__(name: str) -> Any:
    if name == "log":
        from benchpool.metrics import log

        return log
    raise AttributeError(
        f"benchpool.{name} is not in this Python, which has only the parts that jobs need. Install "
        "benchpool there for the others."
    )


if __name__ == "benchpool":
    _give_way()
