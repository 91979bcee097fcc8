"""Detection of checkpoints in the text of code, for a sentence in the dialog."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from benchpool import resume_offers
from benchpool.cells import expressions, magics

_SAVING = frozenset(
    {"save_checkpoint", "save_pretrained", "save_weights", "save_state", "save_model"}
    | {"ModelCheckpoint", "BackupAndRestore", "CheckpointManager", "TrainingArguments"}
)
_CALLBACKS = frozenset({"HuggingFacePauses", "LightningPauses", "KerasPauses"})
_SAVING_OF = frozenset(
    {("torch", "save"), ("joblib", "dump"), ("pickle", "dump"), ("np", "save"), ("np", "savez")}
    | {("numpy", "save"), ("numpy", "savez"), ("accelerator", "save")}
)


NOTHING_SEEN = "no checkpoint found: starts from the beginning after a pause"
OFFER = ". With these lines in place of its own, it resumes where it stopped:"
IN_GENERAL = ". A loop of this form, with all names that it changes, resumes where it stopped:"


@dataclass(frozen=True, slots=True)
class CheckpointFinding:
    """Whether saving was found, and what that means for a pause, as a sentence.

    ``lines`` are suggested code if the checkpoints found may not be enough.
    """

    found: bool
    text: str
    lines: str = ""


def detect(sources: Iterable[str]) -> CheckpointFinding:
    """Return which checkpoints some code saves.

    >>> detect(["with checkpoint.commit(3) as folder: pass"]).found
    True
    >>> detect(["x = 1"]).text == NOTHING_SEEN + IN_GENERAL
    True
    >>> detect(["for step in checkpoint.loop(range(3)): pass"]).text
    'found: checkpoint.loop → resumes exactly where it stopped'
    """
    trees = [tree for source in sources if (tree := magics.read(source).tree) is not None]
    others: list[str] = []
    for chain in _calls(trees):
        if chain[-2:] == ("checkpoint", "loop"):
            return CheckpointFinding(
                True, "found: checkpoint.loop → resumes exactly where it stopped"
            )
        if chain[-1] in _CALLBACKS:
            return CheckpointFinding(True, f"found: {chain[-1]} → resumes from it after a pause")
        if chain[-2:] == ("checkpoint", "commit") or chain == ("commit",):
            return CheckpointFinding(
                True, "found: checkpoint.commit → resumes from it after a pause"
            )
        if chain[-1] in _SAVING or chain[-2:] in _SAVING_OF:
            others.append(".".join(chain))
    lines = resume_offers.lines_for(trees)
    if others:
        text = (
            f"found: {others[0]} → resumes after a pause only if the code loads it from "
            "BENCHPOOL_CHECKPOINT_DIR"
        )
        if lines == resume_offers.ANY:
            return CheckpointFinding(True, text)
        return CheckpointFinding(True, text + OFFER, lines)
    advice = IN_GENERAL if lines == resume_offers.ANY else OFFER
    return CheckpointFinding(False, NOTHING_SEEN + advice, lines)


def _calls(trees: Iterable[ast.Module]) -> Iterable[tuple[str, ...]]:
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                chain = expressions.chain_of(node.func)
                if chain:
                    yield chain
