"""Python interface of benchpool: submit code to the training pool and follow its jobs.

For example::

    import benchpool

    job = benchpool.submit("train.py", "--epochs", "3", gpus=2)
    job                          # in a notebook: a live row with state, progress and log
    job.wait()
    benchpool.jobs()             # mine, newest first
    benchpool.submit(train, lr=0.1, gpus=2)                      # a function of this notebook
    benchpool.map(train, benchpool.grid(lr=[0.1, 0.2], seed=range(5)))
    benchpool.sweep("train.py", values={"lr": "log:1e-4:1e-1"}, metric="val_loss", trials=20)
    benchpool.submit("report.ipynb", every="night at 2")         # a job at each of these times
    benchpool.serve("chat", "answer.py", "{port}", min=0)        # at an address behind the login

In IPython, importing this module also registers the cell magics ``%%train`` and ``%%serve``. The
import is cheap and needs only the standard library. The modules that use the network load on first
use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchpool.failures import JobFailed
    from benchpool.functions.grid import grid
    from benchpool.functions.remote_function import remote
    from benchpool.functions.sending import map
    from benchpool.handles import JobHandle as Job
    from benchpool.handles import job, jobs, quota, status, submit
    from benchpool.metrics import log
    from benchpool.schedule_handles import schedules
    from benchpool.services import serve
    from benchpool.sweeps import sweep

__all__ = [
    "Job", "JobFailed", "grid", "job", "jobs", "log", "map", "quota", "remote", "schedules",
    "serve", "status", "submit", "sweep",
]  # fmt: skip

_OWN_ROOM = {
    "JobFailed": "benchpool.failures",
    "grid": "benchpool.functions.grid",
    "log": "benchpool.metrics",
    "remote": "benchpool.functions.remote_function",
    "map": "benchpool.functions.sending",
    "schedules": "benchpool.schedule_handles",
    "serve": "benchpool.services",
    "sweep": "benchpool.sweeps",
}
"""Public names with a module of their own. For a Python without benchpool see ``in_jobs``."""


def __getattr__(name: str) -> Any:
    if name in _OWN_ROOM:
        import importlib

        return getattr(importlib.import_module(_OWN_ROOM[name]), name)
    if name in __all__:
        from benchpool import handles

        if name == "JobFailed":
            return handles.JobFailed
        return handles.JobHandle if name == "Job" else getattr(handles, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


def load_ipython_extension(ipython: Any) -> None:
    """Register ``%%train`` and ``%%serve``; called by ``%load_ext benchpool``."""
    from benchpool.magic import register

    register(ipython)


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "benchpool"}]


def _load_jupyter_server_extension(server_app: Any) -> None:
    from benchpool.server import load

    load(server_app)


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    return [{"src": "labextension", "dest": "@benchpool/lab"}]


def _register_magic() -> None:
    """Register the magics if this module is imported in IPython (plain scripts do not load it)."""
    import sys

    shell = sys.modules.get("IPython")
    ipython = shell.get_ipython() if shell is not None else None
    if ipython is not None:
        load_ipython_extension(ipython)


_register_magic()
