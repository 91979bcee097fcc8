"""Pauses for ``fit`` of Keras.

For example::

    from benchpool.checkpoint.keras import KerasPauses

    saving = KerasPauses()
    model.fit(x, y, epochs=30, callbacks=[saving], initial_epoch=saving.epoch)

Weights, optimizer and random states are saved at the end of an epoch every ``minutes``, and at once
when the pool asks for a pause. Then ``fit`` ends as paused. A pause in the middle of an epoch keeps
the weights learned so far, and the next attempt starts that epoch again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchpool.checkpoint import commits, pacing, random_states, reports, trees

if TYPE_CHECKING:

    class Callback:
        """Base class of Keras' callbacks, called during training."""

        model: Any
        params: dict[str, Any]
else:
    from keras.callbacks import Callback

_WEIGHTS = "model.weights.h5"
_PLACE = "keras"


class KerasPauses(Callback):
    """Callback that saves a Keras training when the pool asks for a pause, and every ``minutes``.

    Attributes:
        epoch: Epoch to begin with, for ``fit(initial_epoch=…)``.
    """

    def __init__(self, minutes: float = 10.0) -> None:
        super().__init__()
        self._pace = pacing.Pace(minutes)
        self._found = commits.latest()
        self._place = trees.read(self._found, _PLACE) if self._found is not None else None
        self._wanted = False
        self.epoch: int = self._place["epoch"] if self._place is not None else 0

    def on_train_begin(self, logs: Any = None) -> None:
        """Restore weights and optimizer from the last save.

        Raises:
            ValueError: The model has no weights yet that can be set.
        """
        if self._found is not None:
            if not self.model.built:
                raise ValueError("a saved state exists: build the model or add an Input before fit")
            if self.model.optimizer is not None and not self.model.optimizer.built:
                self.model.optimizer.build(self.model.trainable_variables)
            self.model.load_weights(self._found / _WEIGHTS)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Restore the random states of the last save, in the first epoch after it."""
        self.epoch = epoch
        if self._place is not None:
            random_states.restore(self._place["now"])
            self._place = None

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Check for a pause after each batch."""
        epochs, steps = self.params["epochs"], self.params.get("steps") or 0
        of_epoch = (batch + 1) / steps if steps else 0.0
        reports.follow((self.epoch + of_epoch) / epochs, f"epoch {self.epoch + 1} of {epochs}")
        self._wanted |= self._pace.save_now()
        if self._pace.stopping and batch + 1 != steps:
            self._save(self.epoch)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Save after an epoch if a save is due."""
        if self._wanted:
            self._save(epoch + 1)

    def _save(self, epoch: int) -> None:
        with commits.commit(epoch) as folder:
            self.model.save_weights(folder / _WEIGHTS)
            trees.write(folder, _PLACE, {"epoch": epoch, "now": random_states.capture()})
        self._pace.saved()
        self._wanted = False
        if self._pace.stopping:
            pacing.leave_paused()
