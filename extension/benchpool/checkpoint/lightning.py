"""Pauses for the Trainer of Lightning.

For example::

    from benchpool.checkpoint.lightning import LightningPauses

    saving = LightningPauses()
    trainer = Trainer(max_epochs=30, callbacks=[saving])
    trainer.fit(model, saving.resumable(loader), ckpt_path=saving.latest())

The Trainer's own checkpoint is saved with all random states every ``minutes`` and when the pool
asks for a pause. Then ``fit`` ends as paused. A ``resumable`` loader continues with the next batch
of the same order. With any other loader, Lightning starts the order of an interrupted epoch again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from benchpool.checkpoint import commits, pacing, random_states, reports, trees, votes

if TYPE_CHECKING:

    class Callback:
        """Base class of Lightning's callbacks, called during training."""
else:
    try:
        from lightning.pytorch import Callback
    except ImportError:
        from pytorch_lightning import Callback

_FILE = "lightning.ckpt"
_RANDOM = "random.{rank}"


class LightningPauses(Callback):
    """Callback that saves a Lightning training on a pause request, and every ``minutes``."""

    def __init__(self, minutes: float = 10.0) -> None:
        self._pace = pacing.Pace(minutes)
        self._found = commits.latest()
        self._loader: Resumable | None = None
        self._wanted = False

    def latest(self) -> str | None:
        """Return the argument of ``fit(ckpt_path=…)``; None in the first attempt."""
        return None if self._found is None else str(self._found / _FILE)

    def resumable(self, loader: Iterable[Any]) -> Resumable:
        """Return a loader that continues an interrupted epoch with the next batch."""
        self._loader = Resumable(loader, self._earlier())
        return self._loader

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        """Report progress after each batch, and save if a save or a pause is due."""
        steps = trainer.estimated_stepping_batches
        known = isinstance(steps, int) and steps > 0
        share = trainer.global_step / steps if known else None
        reports.follow(share, f"{trainer.global_step} of {steps if known else '?'}")
        self._wanted |= self._pace.save_now()
        # The last batch is followed by the end of the epoch; Lightning continues right from there.
        if self._wanted and not trainer.is_last_batch:
            self._save(trainer)

    def on_train_epoch_end(self, trainer: Any, *_: Any) -> None:
        """Save after an epoch if a save is due."""
        if self._wanted:
            self._save(trainer)

    def _save(self, trainer: Any) -> None:
        with commits.commit(trainer.global_step, together=votes.world_size() > 1) as folder:
            # Every rank takes part: a strategy may gather sharded state from several ranks.
            trainer.save_checkpoint(folder / _FILE)
            place = self._loader.place() if self._loader else {}
            now = {"now": random_states.capture(), **place}
            trees.write(folder, _RANDOM.format(rank=votes.rank()), now)
        self._pace.saved()
        self._wanted = False
        if self._pace.stopping:
            pacing.leave_paused()

    def _earlier(self) -> dict[str, Any] | None:
        if self._found is None:
            return None
        try:
            return dict(trees.read(self._found, _RANDOM.format(rank=votes.rank())))
        except FileNotFoundError:
            return None


class Resumable:
    """Loader that continues an interrupted epoch, with the state interface that Lightning needs."""

    def __init__(self, loader: Any, earlier: dict[str, Any] | None) -> None:
        self._loader, self._earlier = loader, earlier
        self._start: dict[str, Any] = {}
        self._done = 0

    def __len__(self) -> int:
        return len(self._loader)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def __iter__(self) -> Iterator[Any]:
        earlier, self._earlier = self._earlier, None
        self._start, self._done = random_states.capture(), 0
        source = iter(self._loader) if earlier is None else self._again(earlier)
        for batch in source:
            self._done += 1
            yield batch

    def _again(self, earlier: dict[str, Any]) -> Iterator[Any]:
        ended = earlier["done"] >= len(self)  # then the order of the next epoch is drawn now
        self._start = earlier["now" if ended else "start"]
        self._done = 0 if ended else earlier["done"]
        random_states.restore(self._start)
        source: Iterator[Any] = iter(self._loader)
        for _ in range(self._done):
            next(source)
        if not ended:
            random_states.restore(earlier["now"])
        return source

    def place(self) -> dict[str, Any]:
        """Return the position in the epoch."""
        return {"start": self._start, "done": self._done}

    def state_dict(self) -> dict[str, Any]:
        """Return an empty state: the position is stored beside the checkpoint, in no pickle."""
        return {}

    def load_state_dict(self, _: dict[str, Any]) -> None:
        """Do nothing, see ``state_dict``."""
