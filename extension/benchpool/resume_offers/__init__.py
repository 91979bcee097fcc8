"""Suggested lines that let a training resume where it was, with the names of its code."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from benchpool.resume_offers import frameworks, loops, plain_loops

ANY = (
    "from benchpool import checkpoint\n\n"
    "for step in checkpoint.loop(range(N), model=model, optimizer=optimizer):"
)
"""Suggestion for code whose training is not recognised."""


def lines_for(trees: Sequence[ast.Module]) -> str:
    """Return the lines that let a training resume after a pause, with the names of its code.

    >>> print(lines_for([ast.parse("trainer = transformers.Trainer(net)")]))
    from benchpool.checkpoint.huggingface import HuggingFacePauses, latest
    <BLANKLINE>
    trainer.add_callback(HuggingFacePauses())
    trainer.train(resume_from_checkpoint=latest())
    >>> lines_for([ast.parse("x = 1")]) == ANY
    True
    """
    recognised = (frameworks.lines_for, loops.lines_for, plain_loops.lines_for)
    return next((lines for each in recognised if (lines := each(trees))), ANY)
