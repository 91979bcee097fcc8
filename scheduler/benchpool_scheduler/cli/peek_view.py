"""Output of the state of a running job."""

from __future__ import annotations

from benchpool_scheduler.cli import words
from benchpool_scheduler.cli.screen import Screen
from benchpool_scheduler.contract.stacks import Peek


def peek(screen: Screen, answer: Peek) -> None:
    """Print the stacks of workers (equal ones together), GPUs and the last log lines."""
    screen.heading(
        f"{words.clean(answer.text)} Attempt {answer.attempt}, {words.local(answer.at)}."
    )
    for line in answer.lines():
        text = line.lstrip(" ")
        screen.line(" " * (len(line) - len(text)) + words.clean(text))
