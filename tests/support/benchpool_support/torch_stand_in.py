"""Stand-in for torch: tensors, generators and GPUs with random states, and files of tensors.

It is as strict as torch where benchpool depends on it: a state is a tensor in CPU memory, and files
are read as weights only.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


class Tensor:
    """One-dimensional tensor on a device."""

    def __init__(self, values: Iterable[float], device: str = "cpu") -> None:
        self.values, self.device = list(values), device

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, at: int) -> float:
        return self.values[at]

    def __setitem__(self, at: int, value: float) -> None:
        self.values[at] = value

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return 8 * len(self.values)

    def tolist(self) -> list[float]:
        """Return the values."""
        return list(self.values)

    def detach(self) -> Tensor:
        """Return a tensor that shares the values."""
        found = Tensor((), self.device)
        found.values = self.values
        return found

    def to(self, device: str, *, copy: bool = False) -> Tensor:
        """Return the tensor on a device."""
        return Tensor(self.values, device) if copy or device != self.device else self


class Generator:
    """Random generator with a state of its own."""

    def __init__(self) -> None:
        self._draws = random.Random(0)

    def manual_seed(self, seed: int) -> Generator:
        """Set the state from a number."""
        self._draws.seed(seed)
        return self

    def get_state(self) -> Tensor:
        """Return the state."""
        return Tensor(self._draws.getstate()[1])

    def set_state(self, state: Tensor) -> None:
        """Set the state."""
        assert isinstance(state, Tensor)
        assert state.device == "cpu"
        self._draws.setstate((3, tuple(int(each) for each in state.values), None))

    def draw(self) -> float:
        """Return the next number."""
        return self._draws.random()

    def order(self, number: int) -> list[int]:
        """Return the next random order of 0 to ``number`` - 1."""
        return self._draws.sample(range(number), number)


class Cuda:
    """GPUs, each with a generator. Like torch, it initializes them at the first use."""

    def __init__(self, gpus: int) -> None:
        self._generators = [Generator().manual_seed(gpu) for gpu in range(gpus)]
        self._initialized = False

    def is_available(self) -> bool:
        """Return whether there are GPUs."""
        return bool(self._generators)

    def is_initialized(self) -> bool:
        """Return whether the program has used a GPU."""
        return self._initialized

    def device_count(self) -> int:
        """Return the number of GPUs."""
        return len(self._generators)

    def draw(self, gpu: int) -> float:
        """Return the next random number of a GPU."""
        self._initialized = True
        return self._generators[gpu].draw()

    def get_rng_state_all(self) -> list[Tensor]:
        """Return the state of each GPU."""
        assert self._initialized, "this would initialize the GPUs of a program that uses none"
        return [each.get_state() for each in self._generators]

    def set_rng_state(self, state: Tensor, device: int) -> None:
        """Set the state of one GPU."""
        self._generators[device].set_state(state)


class RandomSampler:
    """Sampler of torch that draws a new order from its generator in each epoch."""

    def __init__(self, items: Sequence[int], generator: Generator | None = None) -> None:
        self._items, self.generator = items, generator

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[int]:
        drawing: Any = self.generator or sys.modules["torch"]
        return iter([self._items[at] for at in drawing.order(len(self._items))])


class DistributedSampler:
    """Sampler of torch whose order depends on its epoch alone."""

    def __init__(self, items: Sequence[int]) -> None:
        self._items, self.epoch = items, 0

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next order."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        order = Generator().manual_seed(self.epoch).order(len(self._items))
        return iter([self._items[at] for at in order])


class Group:
    """Process group ``torch.distributed`` of two ranks.

    Args:
        others: Votes of the other rank, for each all-reduce.
        rank: Number of this rank.
    """

    ReduceOp = SimpleNamespace(MAX="max")

    def __init__(self, others: Iterable[Sequence[int]], rank: int) -> None:
        self._others, self._rank = iter(others), rank

    def is_available(self) -> bool:
        """Return True."""
        return True

    is_initialized = is_available

    def get_world_size(self) -> int:
        """Return the number of ranks."""
        return 2

    def get_rank(self) -> int:
        """Return the number of this rank."""
        return self._rank

    def get_backend(self) -> str:
        """Return the name of the transport."""
        return "gloo"

    def all_reduce(self, votes: Tensor, op: str) -> None:
        """Write the maxima of both ranks into a tensor."""
        assert op == "max"
        votes.values = [max(each) for each in zip(votes.values, next(self._others), strict=True)]


def _save(tensors: list[Tensor], path: Path) -> None:
    path.write_text(json.dumps([[each.device, each.values] for each in tensors]))


def _load(path: Path, *, map_location: str, weights_only: bool) -> list[Tensor]:
    assert weights_only
    return [Tensor(values, map_location) for _, values in json.loads(path.read_text())]


def install(environment: pytest.MonkeyPatch, *, gpus: int = 0, group: Group | None = None) -> Any:
    """Make a stand-in, as after the import in a new process, importable as torch; return it.

    Args:
        group: The initialized process group, or None.
    """
    torch, own = ModuleType("torch"), Generator()
    found = {
        "Tensor": Tensor,
        "Generator": Generator,
        "tensor": Tensor,
        "manual_seed": own.manual_seed,
        "get_rng_state": own.get_state,
        "set_rng_state": own.set_state,
        "draw": own.draw,
        "order": own.order,
        "cuda": Cuda(gpus),
        "save": _save,
        "load": _load,
    }
    vars(torch).update(found)
    environment.setitem(sys.modules, "torch", torch)
    if group is not None:
        environment.setitem(sys.modules, "torch.distributed", group)
    return torch
