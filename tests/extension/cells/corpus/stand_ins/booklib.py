"""Stand-in for the helper modules of textbooks, reduced to what the corpus uses."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

SIZE = 3


def area() -> int:
    return SIZE * SIZE


def add_to_class(owner: type) -> Callable[[Callable[..., Any]], None]:
    """Return a decorator that adds a function to a class and returns None."""

    def wrap(function: Callable[..., Any]) -> None:
        setattr(owner, function.__name__, function)

    return wrap


def patch(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the function to the class named by the annotation of its first parameter."""
    first = next(iter(function.__annotations__.values()))
    setattr(first, function.__name__, function)
    return function


def setup_mode(mode: str) -> None:
    os.environ["BOOK_MODE"] = mode


def load_env() -> None:
    os.environ["BOOK_MODE"] = "loaded"


def train_epochs(model: Any, batches: Any, optimizer: Any, epochs: int = 1) -> list[float]:
    """Train the model in place, as a textbook helper does, and return the losses."""
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


def boot() -> None:
    os.environ["BOOK_MODE"] = "booted"


def tune(level: str) -> str:
    os.environ["BOOK_MODE"] = level
    return level


def configure(settings: dict[str, str]) -> None:
    os.environ.update(settings)


def loaders(count: int) -> tuple[Any, Any]:
    """Return two loaders, as a textbook's ``load_data`` does."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    data = TensorDataset(torch.arange(float(count)))
    return DataLoader(data, batch_size=2, shuffle=True), DataLoader(data, batch_size=2)
