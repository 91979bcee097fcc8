"""Objects that a loop carries over a pause, each saved by the means that its kind offers.

>>> history, chosen = [1.5], {"lr": 0.1}
>>> carries = {"history": history, "chosen": chosen}
>>> saved = copied(states(carries))
>>> history.append(2.5), chosen.clear()
(None, None)
>>> apply_all(carries, saved), history, chosen
(None, [1.5], {'lr': 0.1})
>>> check("model", object())
Traceback (most recent call last):
    ...
TypeError: loop(model=…): object cannot be saved and restored. Add state_dict() and \
load_state_dict(), or pass a list, a dict, a set or a random generator.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from benchpool.checkpoint import random_states


class CarriedKind(NamedTuple):
    """Functions that recognise, save and restore objects of one kind."""

    fits: Callable[[Any], bool]
    state: Callable[[Any], Any]
    apply: Callable[[Any, Any], object]


def _has(*names: str) -> Callable[[Any], bool]:
    return lambda value: all(hasattr(value, name) for name in names)


def _refill(value: Any, state: Any) -> None:
    value.clear()
    (value.extend if isinstance(value, list) else value.update)(state)


_SAMPLER = CarriedKind(_has("generator", "__iter__"), lambda value: None, lambda value, state: None)
"""A sampler or loader of torch. Its generator, if it has one, is carried in its place."""

KINDS = (
    CarriedKind(
        _has("state_dict", "load_state_dict"),
        lambda value: value.state_dict(),
        lambda value, state: value.load_state_dict(state),
    ),
    CarriedKind(lambda value: isinstance(value, (dict, list, set)), lambda value: value, _refill),
    # A sampler of torch whose draws depend on its epoch.
    CarriedKind(
        _has("set_epoch", "epoch"),
        lambda value: value.epoch,
        lambda value, state: value.set_epoch(state),
    ),
    _SAMPLER,
    CarriedKind(
        _has("get_weights", "set_weights"),
        lambda value: value.get_weights(),
        lambda value, state: value.set_weights(state),
    ),
)
"""Known kinds of objects; the first match is used."""

_SHARDED = frozenset({"FullyShardedDataParallel", "FSDPModule"})


def check(name: str, value: object) -> None:
    """Check that an object can be saved.

    Raises:
        TypeError: No known way to save it, or it is sharded over several ranks. Names the argument.
    """
    kind = type(value)
    if _SHARDED & {base.__name__ for base in kind.__mro__}:
        raise TypeError(
            f"loop({name}=…): {kind.__name__} is sharded over the ranks. Save it with "
            "torch.distributed.checkpoint inside `checkpoint.commit(step, together=True)`."
        )
    if not random_states.is_generator(value) and not any(each.fits(value) for each in KINDS):
        raise TypeError(
            f"loop({name}=…): {kind.__name__} cannot be saved and restored. Add state_dict() and "
            "load_state_dict(), or pass a list, a dict, a set or a random generator."
        )


def states(carries: Mapping[str, Any]) -> dict[str, Any]:
    """Return the states of the carried objects by name, except random generators."""
    return {
        name: _kind(each).state(each)
        for name, each in carries.items()
        if not random_states.is_generator(each)
    }


def apply_all(carries: Mapping[str, Any], states: Mapping[str, Any]) -> None:
    """Restore the carried objects from the states that ``states`` returned."""
    for name, state in states.items():
        if name in carries:
            _kind(carries[name]).apply(carries[name], state)


def generators(carries: Mapping[str, Any]) -> dict[str, Any]:
    """Return the states of the carried random generators, as plain values."""
    found = ((name, _generator(each)) for name, each in carries.items())
    return {name: random_states.of_generator(each) for name, each in found if each is not None}


def set_generators(carries: Mapping[str, Any], states: Mapping[str, Any]) -> None:
    """Restore the carried random generators from the states that ``generators`` returned."""
    for name, state in states.items():
        generator = _generator(carries[name]) if name in carries else None
        if generator is not None:
            random_states.into_generator(generator, state)


def size(states: Any) -> int:
    """Return the size of the arrays in some states, in bytes."""
    if isinstance(states, Mapping):
        return sum(size(each) for each in states.values())
    if isinstance(states, (list, tuple)):
        return sum(size(each) for each in states)
    return int(getattr(states, "nbytes", 0))


def copied(state: Any) -> Any:
    """Return a copy in CPU memory, which later turns do not change."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(state, torch.Tensor):
        return state.detach().to("cpu", copy=True)
    if isinstance(state, dict):
        # A dict of torch carries its versions as an attribute, which copy() keeps.
        fresh = copy.copy(state)
        fresh.update((key, copied(inside)) for key, inside in state.items())
        return fresh
    if type(state) in (list, tuple, set, frozenset):
        return type(state)(copied(inside) for inside in state)
    # An array of NumPy. Other values are immutable, or cannot be saved, which is reported then.
    return state.copy() if hasattr(state, "dtype") else state


def _generator(value: Any) -> Any:
    """Return the random generator that a value is or draws from, or None."""
    if random_states.is_generator(value):
        return value
    return value.generator if _kind(value) is _SAMPLER else None


def _kind(value: Any) -> CarriedKind:
    return next(each for each in KINDS if each.fits(value))
