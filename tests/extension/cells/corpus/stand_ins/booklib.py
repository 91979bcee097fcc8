"""What books bring along as a module of their own, small enough to be read here."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

SIZE = 3


def area() -> int:
    return SIZE * SIZE


def add_to_class(owner: type) -> Callable[[Callable[..., Any]], None]:
    """Add the decorated function to a class, and leave no function behind."""

    def wrap(function: Callable[..., Any]) -> None:
        setattr(owner, function.__name__, function)

    return wrap


def patch(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the function to the class by which its first parameter is annotated."""
    first = next(iter(function.__annotations__.values()))
    setattr(first, function.__name__, function)
    return function


def setup_mode(mode: str) -> None:
    os.environ["BOOK_MODE"] = mode


def load_env() -> None:
    os.environ["BOOK_MODE"] = "loaded"


def train_epochs(model: Any, batches: Any, optimizer: Any, epochs: int = 1) -> list[float]:
    """Train as a chapter's helper does: the model and its optimiser change."""
    losses = []
    for _ in range(epochs):
        for x, y in batches:
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            losses.append(float(loss))
    return losses


def show_losses(losses: Any) -> None:
    print(len(losses))
