"""Random states of a process: Python's, NumPy's, torch's and its GPUs'.

NumPy and torch are included only if the program has imported them.

>>> before = capture()
>>> drawn = random.random()
>>> restore(before)
>>> random.random() == drawn
True
"""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping
from typing import Any


def capture() -> dict[str, Any]:
    """Return the global random states, by library."""
    states: dict[str, Any] = {"python": random.getstate()}
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None:
        states["numpy"] = numpy.random.get_state(legacy=False)
    if torch is not None:
        states["torch"] = torch.get_rng_state()
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            states["cuda"] = torch.cuda.get_rng_state_all()
    return states


def restore(states: Mapping[str, Any]) -> None:
    """Restore the global random states; those of libraries not imported are skipped."""
    random.setstate(states["python"])
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None and "numpy" in states:
        numpy.random.set_state(states["numpy"])
    if torch is not None and "torch" in states:
        torch.set_rng_state(states["torch"])
        if torch.cuda.is_available():
            devices = range(torch.cuda.device_count())
            for device, each in zip(devices, states.get("cuda", ())):  # noqa: B905 (Python 3.9)
                torch.cuda.set_rng_state(each, device)


def is_generator(value: object) -> bool:
    """Return whether a value draws random numbers from its own state."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    kinds: tuple[Any, ...] = (random.Random,)
    if numpy is not None:
        kinds += (numpy.random.Generator, numpy.random.RandomState)
    if torch is not None:
        kinds += (torch.Generator,)
    return isinstance(value, kinds)


def of_generator(generator: Any) -> Any:
    """Return the state of one generator."""
    if isinstance(generator, random.Random):
        return generator.getstate()
    if hasattr(generator, "bit_generator"):
        return generator.bit_generator.state
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(generator, torch.Generator):
        return generator.get_state()
    return generator.get_state(legacy=False)


def into_generator(generator: Any, state: Any) -> None:
    """Restore the state of one generator."""
    if isinstance(generator, random.Random):
        generator.setstate(state)
    elif hasattr(generator, "bit_generator"):
        generator.bit_generator.state = state
    else:
        generator.set_state(state)
