"""Metrics of trainers whose code does not report: the values that each library logs are reported.

Each hook only adds a listener through the library's own interface. Errors in it are suppressed, so
that they never end a training.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from benchpool.metrics import reporting

LEFT_OUT = ("epoch", "total_flos", "v_num")
ENDS_LEFT_OUT = ("_runtime", "_per_second")
"""Names (``LEFT_OUT``) and name endings that libraries log with the metrics but that are none."""
EVERY_S = 0.5
"""Minimum interval between reports of a library that logs after each batch, in seconds."""


def attach(library: str, module: ModuleType) -> None:
    """Listen to a library that has just been imported. May raise any error of the library."""
    _ATTACH[library](module)


def _report(values: Mapping[str, Any], step: object) -> None:
    """Report the values that a trainer logs. Progress bars repeat them and are then ignored."""
    global _trainer_speaks
    _trainer_speaks = True
    kept = {
        name: value
        for name, value in values.items()
        if name not in LEFT_OUT and not name.endswith(ENDS_LEFT_OUT)
    }
    reporting.report(kept, step)


_trainer_speaks = False


class ListeningPace:
    """Limit to one report per ``EVERY_S``."""

    def __init__(self) -> None:
        self._last = 0.0

    def now(self) -> bool:
        """Return whether the interval has passed since the last report."""
        at = time.monotonic()
        if at - self._last < EVERY_S:
            return False
        self._last = at
        return True


def _quietly(listen: Callable[..., None]) -> Callable[..., None]:
    """Return a listener that never raises; after its first error it does nothing."""
    silent = False

    def listener(*args: Any, **kwargs: Any) -> None:
        nonlocal silent
        if silent:
            return
        try:
            listen(*args, **kwargs)
        except Exception:
            silent = True

    return listener


# ------------------------------------------------------------------ transformers


def _transformers(module: Any) -> None:
    """Add a callback to the default callbacks of every Trainer."""

    @_quietly
    def on_log(_: Any, args: Any, state: Any, control: Any, logs: Any = None, **__: Any) -> None:
        if state.is_world_process_zero and logs:
            _report(logs, state.global_step)

    listener = type("BenchpoolCurves", (module.TrainerCallback,), {"on_log": on_log})
    module.DEFAULT_CALLBACKS.append(listener)


# ------------------------------------------------------------------ Keras


def _keras(module: Any) -> None:
    """Add a callback to the list of ``fit``, the only one that keeps a history."""
    begin = module.CallbackList.__init__

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **kwargs)
        if kwargs.get("add_history"):
            add(self, kwargs.get("model"))

    @_quietly
    def add(callbacks: Any, model: Any) -> None:
        listener = _keras_listener(module.Callback)
        listener.set_model(model)
        callbacks.callbacks.append(listener)

    module.CallbackList.__init__ = __init__


def _keras_listener(base: Any) -> Any:
    pace = ListeningPace()

    def step(listener: Any, other: int) -> int:
        iterations = getattr(getattr(listener.model, "optimizer", None), "iterations", None)
        return other if iterations is None else int(iterations)

    @_quietly
    def on_train_batch_end(self: Any, batch: int, logs: Any = None) -> None:
        if logs and pace.now():
            _report({f"batch/{name}": value for name, value in logs.items()}, step(self, batch))

    @_quietly
    def on_epoch_end(self: Any, epoch: int, logs: Any = None) -> None:
        _report(logs or {}, step(self, epoch))

    listening = {"on_train_batch_end": on_train_batch_end, "on_epoch_end": on_epoch_end}
    return type("BenchpoolCurves", (base,), listening)()


# ------------------------------------------------------------------ Lightning


def _lightning(module: Any) -> None:
    """Add a callback to every Trainer."""
    pace = ListeningPace()

    @_quietly
    def report(_: Any, trainer: Any, *__: Any) -> None:
        if trainer.is_global_zero and not trainer.sanity_checking:
            _report(trainer.callback_metrics, trainer.global_step)

    def now_and_then(self: Any, trainer: Any, *rest: Any) -> None:
        if pace.now():
            report(self, trainer, *rest)

    listening = {
        "on_train_batch_end": lambda self, trainer, *_: now_and_then(self, trainer),
        "on_validation_end": lambda self, trainer, *_: report(self, trainer),
        "on_train_epoch_end": lambda self, trainer, *_: report(self, trainer),
    }
    listener = type("BenchpoolCurves", (module.Callback,), listening)
    begin = module.Trainer.__init__

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **kwargs)
        add(self)

    @_quietly
    def add(trainer: Any) -> None:
        trainer.callbacks.insert(0, listener())  # callbacks that save must stay last

    module.Trainer.__init__ = __init__


# ------------------------------------------------------------------ tqdm


def _tqdm(module: Any) -> None:
    """Report the numbers beside a bar: ``bar.set_postfix(loss=loss)``.

    They have no step, since bars of batches restart with each epoch.
    """
    show = module.tqdm.set_postfix

    def set_postfix(self: Any, ordered_dict: Any = None, refresh: Any = True, **kwargs: Any) -> Any:
        report_postfix({**(ordered_dict or {}), **kwargs})
        return show(self, ordered_dict, refresh, **kwargs)

    @_quietly
    def report_postfix(values: Mapping[str, Any]) -> None:
        numbers = {name: _number(value) for name, value in values.items()}
        if not _trainer_speaks and not reporting.by_program:
            reporting.report(numbers, None)

    module.tqdm.set_postfix = set_postfix


def _number(value: Any) -> Any:
    """Return a number given as text as a number, and any other value unchanged.

    >>> _number("0.25"), _number(3), _number("high")
    (0.25, 3, 'high')
    """
    if not isinstance(value, str):
        return value
    try:
        return float(value)
    except ValueError:
        return value


_ATTACH: Mapping[str, Callable[[Any], None]] = {
    "transformers": _transformers,
    "keras": _keras,
    "lightning": _lightning,
    "tqdm": _tqdm,
}
