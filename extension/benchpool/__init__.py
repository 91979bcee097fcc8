"""benchpool in Python: send code to the training pool and follow it.

For example::

    import benchpool

    job = benchpool.submit("train.py", "--epochs", "3", gpus=2)
    job                          # in a notebook: a live row with state, progress and log
    job.wait()
    benchpool.jobs()             # mine, newest first

In IPython, importing this module also registers the cell magic ``%%train``. Importing it is cheap
and needs nothing but the standard library; what talks to the pool is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchpool.handles import JobHandle as Job
    from benchpool.handles import job, jobs, quota, status, submit

__all__ = ["Job", "job", "jobs", "quota", "status", "submit"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from benchpool import handles

        return handles.JobHandle if name == "Job" else getattr(handles, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


def load_ipython_extension(ipython: Any) -> None:
    """Register ``%%train``; called by ``%load_ext benchpool``."""
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
    """Offer ``%%train`` where this is imported in IPython; a plain script does not load IPython."""
    import sys

    shell = sys.modules.get("IPython")
    ipython = shell.get_ipython() if shell is not None else None
    if ipython is not None:
        load_ipython_extension(ipython)


_register_magic()
