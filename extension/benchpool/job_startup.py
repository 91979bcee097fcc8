"""Startup hook of every Python in a job: shows stacks, lets trainers report and trackers resume.

It is ``sitecustomize`` in the file that ``benchpool_scheduler.worker.job_package`` makes. Another
``sitecustomize`` of the job's Python runs after it. For metrics it costs nothing until one of these
libraries is imported. Standard library only, on every Python from 3.9.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from types import ModuleType
from typing import Any

HOOKS = {
    "transformers.trainer": "transformers",
    "keras.src.callbacks.callback_list": "keras",
    "lightning.pytorch.trainer.trainer": "lightning",
    "pytorch_lightning.trainer.trainer": "lightning",
    "tqdm.std": "tqdm",
    "mlflow.tracking.fluent": "mlflow",
    "trackio": "trackio",
    "wandb": "wandb",
    "torch.utils.tensorboard.writer": "tensorboard",
}
"""Module after whose import the hook runs, and the library's name in BENCHPOOL_HOOKS."""
TRACKERS = {
    **dict.fromkeys(("mlflow", "trackio", "tensorboard"), "starts a new run in each attempt"),
    "wandb": "is not linked from the job",
}
"""Trackers, and what is missing if benchpool's hook fails; the other libraries report metrics."""


def wanted(chosen: str | None) -> set[str]:
    """Return the libraries to hook: all, or those that ``BENCHPOOL_HOOKS`` names.

    >>> len(wanted(None)), wanted("none"), sorted(wanted("keras, tqdm"))
    (8, set(), ['keras', 'tqdm'])
    """
    known = set(HOOKS.values())
    return known if chosen is None else known & {one.strip() for one in chosen.split(",")}


class HookFinder:
    """Import hook that finds modules as usual and runs benchpool's hooks after their import.

    Args:
        names: The libraries that may report.
    """

    def __init__(self, names: set[str]) -> None:
        self._names = names

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a hooked module, or None for any other module."""
        library = HOOKS.get(name)
        if library not in self._names:
            return None
        for finder in sys.meta_path:
            found = None if finder is self else finder.find_spec(name, path, target)
            if found is not None:
                if found.loader is not None and hasattr(found.loader, "exec_module"):
                    self._act_after(found.loader, library)
                return found
        return None

    def _act_after(self, loader: Any, library: str) -> None:
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            _hook(library, module)

        try:
            loader.exec_module = exec_module
        except AttributeError:
            return  # a loader that accepts no attribute: its module reports nothing


def _hook(library: str, module: ModuleType) -> None:
    part = "trackers" if library in TRACKERS else "hooks"
    try:
        import_module(f"benchpool.metrics.{part}").attach(library, module)
    except Exception as failed:
        what = TRACKERS.get(library, "reports no metrics")
        print(f"benchpool: {library} {what} ({type(failed).__name__}: {failed})", file=sys.stderr)


def _run_other(own: str) -> None:
    """Run the next ``sitecustomize`` on the path, if there is one."""
    # Only later entries: an earlier ``sitecustomize`` has already run, and has led here.
    places = sys.path[sys.path.index(own) + 1 :] if own in sys.path else []
    spec = PathFinder.find_spec("sitecustomize", places)
    if spec is not None and spec.loader is not None:
        sys.modules["sitecustomize"] = module = module_from_spec(spec)
        spec.loader.exec_module(module)


def _arrange_stacks() -> None:
    """Let a signal write the stacks of this Python, if the module for it is available."""
    with suppress(ImportError):
        import_module("benchpool_stacks").arrange()


if __name__ == "sitecustomize":
    if os.environ.get("BENCHPOOL_NOTICE_FILE"):
        _arrange_stacks()
    if os.environ.get("BENCHPOOL_METRICS_FILE"):
        _names = wanted(os.environ.get("BENCHPOOL_HOOKS"))
        if _names:
            sys.meta_path.insert(0, HookFinder(_names))
    _run_other(os.path.dirname(__file__))
