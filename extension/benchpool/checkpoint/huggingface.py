"""Pauses for the Trainer of Hugging Face's transformers.

For example::

    from benchpool.checkpoint.huggingface import HuggingFacePauses, latest

    trainer = Trainer(model, arguments, train_dataset=data, callbacks=[HuggingFacePauses()])
    trainer.train(resume_from_checkpoint=latest())

The Trainer saves as usual (model, optimizer, schedule, random states, position in the epoch) every
``minutes`` and when the pool asks for a pause. The saved state becomes the checkpoint of the job.
After a pause request ``train`` ends as paused.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchpool.checkpoint import commits, pacing, reports

if TYPE_CHECKING:

    class TrainerCallback:
        """Base class of transformers' callbacks, called during training."""
else:
    from transformers import TrainerCallback


def latest() -> str | None:
    """Return the argument of ``train(resume_from_checkpoint=…)``; None in the first attempt."""
    found = commits.latest()
    return None if found is None else str(found)


class HuggingFacePauses(TrainerCallback):
    """Callback that saves a Trainer when the pool asks the job to pause, and every ``minutes``."""

    def __init__(self, minutes: float = 10.0) -> None:
        self._pace = pacing.Pace(minutes)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        """Check for a pause or a due save after each step of the optimizer."""
        done, all_steps = state.global_step, state.max_steps
        reports.follow(done / all_steps if all_steps else None, f"{done} of {all_steps}")
        if self._pace.save_now():
            control.should_save = True
            control.should_training_stop |= self._pace.stopping
        return control

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Make the Trainer's save the checkpoint of the job."""
        written = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        with commits.commit(state.global_step) as folder:
            shutil.copytree(written, folder, copy_function=_linked, dirs_exist_ok=True)
        self._pace.saved()
        if self._pace.stopping:
            pacing.leave_paused()


def _linked(old: str, new: str) -> None:
    try:
        os.link(old, new)
    except OSError:  # on another file system
        shutil.copy2(old, new)
