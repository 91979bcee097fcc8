"""Nested states as files, without pickle: a JSON tree with its arrays and tensors beside it.

``NAME.json`` is the tree, ``NAME.npz`` its NumPy arrays, ``NAME.pt`` its tensors (``torch.save``,
read with ``weights_only``). Lists, tuples, sets, counters and dicts keep their type, and dict keys
theirs.

>>> import tempfile
>>> state = {0: {"step": 3.5, "betas": (0.9, 0.999)}, "seen": {1, 2}, "name": None}
>>> with tempfile.TemporaryDirectory() as folder:
...     write(Path(folder), "s", state)
...     read(Path(folder), "s") == state
True
>>> write(Path("."), "s", {"scheduler": {"f": print}})
Traceback (most recent call last):
    ...
TypeError: scheduler.f has the type builtin_function_or_method, which cannot be saved
"""

from __future__ import annotations

import base64
import importlib
import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_KIND = "$"
SUFFIXES = (".json", ".npz", ".pt")


def write(folder: Path, name: str, tree: Any) -> None:
    """Write a tree of plain values, arrays and tensors.

    Raises:
        TypeError: A value cannot be saved; the message names its position.
    """
    parts = _Parts()
    plain = json.dumps(parts.of(tree, ()))
    if parts.arrays:
        numpy: Any = sys.modules["numpy"]
        numpy.savez(folder / f"{name}.npz", *parts.arrays)
    if parts.tensors:
        torch: Any = sys.modules["torch"]
        torch.save(parts.tensors, folder / f"{name}.pt")
    (folder / f"{name}.json").write_text(plain, "utf-8")


def read(folder: Path, name: str) -> Any:
    """Return a tree that was written. Tensors are in CPU memory.

    Raises:
        FileNotFoundError: There is no tree of that name.
    """
    plain = json.loads((folder / f"{name}.json").read_text("utf-8"))
    arrays, tensors = folder / f"{name}.npz", folder / f"{name}.pt"
    leaves: dict[str, Any] = {"array": {}, "tensor": []}
    if arrays.exists():
        numpy: Any = importlib.import_module("numpy")
        with numpy.load(arrays, allow_pickle=False) as found:
            leaves["array"] = {int(key[4:]): found[key] for key in found}  # arr_0, arr_1, …
    if tensors.exists():
        torch: Any = importlib.import_module("torch")
        leaves["tensor"] = torch.load(tensors, map_location="cpu", weights_only=True)
    return _whole(plain, leaves)


class _Parts:
    """Arrays and tensors of a tree, in the order in which they are found."""

    def __init__(self) -> None:
        self.arrays: list[Any] = []
        self.tensors: list[Any] = []

    def of(self, value: Any, path: tuple[str, ...]) -> Any:
        """Return a value in a form that JSON can represent."""
        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, Mapping):
            kind = "counter" if isinstance(value, Counter) else "dict"
            pairs = [(key, self.of(each, (*path, str(key)))) for key, each in value.items()]
            if kind == "dict" and all(type(key) is str and key != _KIND for key, _ in pairs):
                return dict(pairs)
            return {_KIND: kind, "of": [[self.of(key, path), each] for key, each in pairs]}
        if isinstance(value, (list, tuple, set, frozenset)):
            inside = [self.of(each, (*path, str(at))) for at, each in enumerate(value)]
            kind = next(name for name, each in _MANY.items() if isinstance(value, each))
            return inside if kind == "list" else {_KIND: kind, "of": inside}
        return self._leaf(value, path)

    def _leaf(self, value: Any, path: tuple[str, ...]) -> Any:
        numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.Tensor):
            self.tensors.append(value.detach())
            return {_KIND: "tensor", "of": len(self.tensors) - 1}
        if numpy is not None and isinstance(value, numpy.ndarray) and value.dtype != object:
            self.arrays.append(value)
            return {_KIND: "array", "of": len(self.arrays) - 1}
        if numpy is not None and isinstance(value, numpy.generic):
            self.arrays.append(numpy.asarray(value))
            return {_KIND: "scalar", "of": len(self.arrays) - 1}
        if isinstance(value, (bytes, bytearray)):
            return {_KIND: "bytes", "of": base64.b64encode(value).decode()}
        where, kind = ".".join(path) or "it", type(value).__name__
        raise TypeError(f"{where} has the type {kind}, which cannot be saved")


_MANY: dict[str, type[Any]] = {each.__name__: each for each in (list, tuple, set, frozenset)}


def _whole(plain: Any, leaves: Mapping[str, Any]) -> Any:
    if isinstance(plain, list):
        return [_whole(each, leaves) for each in plain]
    if not isinstance(plain, dict):
        return plain
    kind = plain.get(_KIND)
    if kind is None:
        return {key: _whole(each, leaves) for key, each in plain.items()}
    of = plain["of"]
    if kind in _MANY:
        return _MANY[kind](_whole(each, leaves) for each in of)
    if kind in ("dict", "counter"):
        pairs = {_whole(key, leaves): _whole(each, leaves) for key, each in of}
        return Counter(pairs) if kind == "counter" else pairs
    if kind == "bytes":
        return base64.b64decode(of)
    return leaves["array"][of][()] if kind == "scalar" else leaves[kind][of]
