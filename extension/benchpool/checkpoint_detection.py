"""Whether code seems to save checkpoints: found in its text, for a sentence in the dialog."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from benchpool.cells import expressions, magics

_SAVING = frozenset(
    {"save_checkpoint", "save_pretrained", "save_weights", "save_state", "save_model"}
    | {"ModelCheckpoint", "BackupAndRestore", "CheckpointManager", "TrainingArguments"}
)
_SAVING_OF = frozenset(
    {("torch", "save"), ("joblib", "dump"), ("pickle", "dump"), ("np", "save"), ("np", "savez")}
    | {("numpy", "save"), ("numpy", "savez"), ("accelerator", "save")}
)


@dataclass(frozen=True, slots=True)
class CheckpointFinding:
    """Whether saving was found, and what that means for a pause, as a sentence."""

    found: bool
    text: str


def detect(sources: Iterable[str]) -> CheckpointFinding:
    """Look for checkpoints in code.

    >>> detect(["with checkpoint.commit(3) as folder: pass"]).found
    True
    >>> detect(["x = 1"]).text
    'no checkpoint seen: starts again from the beginning when paused'
    """
    others: list[str] = []
    for chain in _calls(sources):
        if chain[-2:] == ("checkpoint", "commit") or chain == ("commit",):
            return CheckpointFinding(
                True, "found: checkpoint.commit → goes on from there when paused"
            )
        if chain[-1] in _SAVING or chain[-2:] in _SAVING_OF:
            others.append(".".join(chain))
    if others:
        text = (
            f"found: {others[0]} → goes on when paused only if the code loads it again from "
            "BENCHPOOL_CHECKPOINT_DIR"
        )
        return CheckpointFinding(True, text)
    return CheckpointFinding(
        False, "no checkpoint seen: starts again from the beginning when paused"
    )


def _calls(sources: Iterable[str]) -> Iterable[tuple[str, ...]]:
    for source in sources:
        tree = magics.read(source).tree
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Call):
                chain = expressions.chain_of(node.func)
                if chain:
                    yield chain
