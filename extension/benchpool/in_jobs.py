"""``benchpool`` in a Python that lacks it: the parts that need only the standard library.

This is the package's ``__init__`` in the files that ``benchpool_scheduler.worker.job_package``
makes, for jobs and for kernels of notebooks. If that Python has benchpool installed, the installed
package is used as a whole instead. Works on every Python from 3.9.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from typing import Any

IN_JOBS = {
    "grid": "benchpool.functions.grid",
    "log": "benchpool.metrics",
    "remote": "benchpool.functions.remote_function",
}
"""Names that every job has, with their modules."""

IN_KERNELS = {
    "JobFailed": "benchpool.failures",
    "job": "benchpool.foreign.jobs",
    "map": "benchpool.foreign.functions",
    "submit": "benchpool.foreign.functions",
}
"""Names that kernels of a notebook server have too. They reach the pool by the server's Python."""


def load_ipython_extension(ipython: Any) -> None:
    """Register ``%%train`` and ``%%serve``; called by ``%load_ext benchpool``.

    In a job, which sends nothing, it does nothing.
    """
    if _in_kernel():
        from benchpool.foreign import magics

        magics.register(ipython)


def _in_kernel() -> bool:
    return "BENCHPOOL_SERVER_PYTHON" in os.environ


def _installed() -> ModuleSpec | None:
    """Return the spec of a benchpool installed outside this module's file, or None."""
    own, before = os.path.dirname(os.path.dirname(__file__)), list(sys.path)
    sys.path[:] = [each for each in before if each != own]
    try:
        found = [finder.find_spec(__name__, None) for finder in sys.meta_path]
    finally:
        sys.path[:] = before
    return next((each for each in found if each is not None and each.has_location), None)


def _give_way() -> bool:
    """Replace this module by an installed benchpool, and return whether there is one."""
    spec = _installed()
    if spec is None or spec.loader is None:
        return False
    sys.modules[__name__] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return True


def _register_magics() -> None:
    """Register the magics if a kernel imports this module."""
    shell = sys.modules.get("IPython")
    ipython = shell.get_ipython() if shell is not None else None
    if ipython is not None:
        load_ipython_extension(ipython)


def __getattr__(name: str) -> Any:
    places = {**IN_JOBS, **IN_KERNELS} if _in_kernel() else IN_JOBS
    if name in places:
        return getattr(import_module(places[name]), name)
    raise AttributeError(
        f"benchpool.{name} is not in this Python, which has {', '.join(sorted(places))}. Install "
        "benchpool there for the others."
    )


if __name__ == "benchpool" and not _give_way():
    _register_magics()
