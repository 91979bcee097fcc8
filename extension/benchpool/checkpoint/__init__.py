"""Stop, save and resume: the job's side of the pause contract. Standard library only.

In one line::

    from benchpool import checkpoint

    for step in checkpoint.loop(range(STEPS), model=model, optimizer=optimizer):
        train(step)

By hand::

    saved = checkpoint.latest()                      # a folder, or None
    step, weights = load(saved) if saved else (0, initial())
    while step < STEPS:
        weights = train(weights)
        step += 1
        if step % 100 == 0 or checkpoint.should_stop():
            with checkpoint.commit(step) as folder:  # all of it or nothing
                save(folder, weights)
        if checkpoint.should_stop():
            raise SystemExit(75)                     # anything but 0: paused, not finished
        checkpoint.progress(step / STEPS)

The same code runs outside a job: it is never asked to stop, and saves and reports nothing. Works on
every Python from 3.9, and imports no other package, not even the rest of benchpool.
"""

from __future__ import annotations

from benchpool.checkpoint.commits import CheckpointFault, commit, latest
from benchpool.checkpoint.loops import loop
from benchpool.checkpoint.notices import deadline, directory, remaining
from benchpool.checkpoint.reports import progress
from benchpool.checkpoint.votes import should_stop

__all__ = [
    "CheckpointFault",
    "commit",
    "deadline",
    "directory",
    "latest",
    "loop",
    "progress",
    "remaining",
    "should_stop",
]
