"""Output of machines."""

from __future__ import annotations

from collections.abc import Sequence

from benchpool_scheduler import phrases
from benchpool_scheduler.cli import words
from benchpool_scheduler.cli.screen import Column, Screen
from benchpool_scheduler.contract.nodes import PoolNode

NODE_COLUMNS = (
    Column("NODE", width=20),
    Column("STATE"),
    Column("GPUS", align="right"),
    Column("JOBS", align="right"),
    Column("BENCHES", align="right"),
    Column("NOTE", rest=True),
)


def nodes(screen: Screen, answer: Sequence[PoolNode]) -> None:
    """Print the machines of the pool."""
    screen.table(
        NODE_COLUMNS,
        [
            [
                words.clean(it.name),
                it.intake.value,
                f"{it.held} of {it.gpus}",
                str(it.jobs),
                str(it.benches),
                words.clean(_note_of(it)),
            ]
            for it in answer
        ],
    )


def node(screen: Screen, answer: PoolNode) -> None:
    """Print one machine, after a change to it."""
    screen.heading(words.clean(answer.text))
    held = f"{answer.held} of {phrases.count(answer.gpus, 'GPU')}"
    who = f"{phrases.count(answer.jobs, 'job')}, {phrases.count(answer.benches, 'notebook server')}"
    screen.facts([("In use", f"{held} by {who}")])
    if answer.unfinished:
        screen.facts([("In time", words.clean(phrases.run_beyond(answer.unfinished)))])
    if answer.note:
        screen.facts([("Note", words.clean(answer.note))])


def _note_of(node: PoolNode) -> str:
    """Return the text of the last column: why the machine is or will be closed, and its note."""
    closed = node.text.removeprefix(f"{node.name} ") if node.reason or node.window else ""
    more = phrases.run_beyond(node.unfinished) if node.unfinished else ""
    return " ".join(part for part in (closed, more, node.note) if part)
