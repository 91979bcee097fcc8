"""Probe that runs inside the user's kernel: values of names, what they share, and the cells run.

Its source is sent to the kernel, so it needs only the standard library of Python 3.8 or later. It
only reads: it accesses no attribute of a user's class, calls none of its ``len()``, ``repr()`` or
properties, and keeps nothing. Objects of well-known libraries are asked for shape and memory.
"""

from __future__ import annotations

import collections
import datetime
import decimal
import fractions
import functools
import pathlib
import random
import re
import sys
import threading
import time
import types
import uuid
from json import dumps
from typing import Any

SECONDS = 0.15
OBJECTS = 4000
ELEMENTS = 4000
HISTORY_BYTES = 1 << 20
DEPTH = 5
"""Limits: time in seconds, objects per name, elements per object, bytes of history text, and depth
of nested tuples.
"""

PLAIN = (
    bool, int, float, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented), range,
    slice, datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone,
    decimal.Decimal, fractions.Fraction, pathlib.PosixPath, pathlib.PurePosixPath, re.Pattern,
    uuid.UUID,
)  # fmt: skip
CONTAINERS = (list, tuple, set, frozenset, collections.deque)
MAPPINGS = (dict, collections.OrderedDict, collections.defaultdict, collections.Counter)
ENDS = (types.ModuleType, types.BuiltinFunctionType, types.CodeType)
LEAVES = (type(threading.Lock()), type(threading.RLock()), random.Random)
ENDING = ("sklearn", "scipy", "pyarrow")
"""Libraries whose compiled objects hold only arrays, and are the base of those arrays."""

SHAPED = {
    *[("pandas", name) for name in ("DataFrame", "Series")],
    *[("numpy", name) for name in ("ndarray", "memmap", "matrix", "MaskedArray")],
    *[("torch", name) for name in ("Tensor", "Parameter")],
    *[("polars", name) for name in ("DataFrame", "Series")],
}


def answer(
    namespace: dict[str, Any], history: list[str], names: list[str], seconds: float = SECONDS
) -> str:
    """Return the answer as JSON text.

    Args:
        namespace: The names of the user.
        history: The texts that ran, by number; the first entry is unused.
        names: The queried names.
        seconds: Time limit in seconds.
    """
    began = time.perf_counter()
    walk = Walk(began + seconds)
    found = {name: walk.look(name, namespace[name]) for name in names if name in namespace}
    for name, facts in found.items():
        facts["shares"] = sorted(walk.sharing(name))
    kept: list[str] = []
    total = 0
    for text in reversed(history[1:]):
        total += len(text)
        if total > HISTORY_BYTES:
            break
        kept.append(text)
    reply = {
        "names": found,
        "history": kept[::-1],
        "first": len(history) - len(kept),
        "seconds": time.perf_counter() - began,
    }
    return dumps(reply)


def in_kernel(namespace: dict[str, Any], names: list[str]) -> Any:
    """Return an object whose representation is the answer for the kernel that runs this."""
    shell = sys.modules["IPython"].get_ipython()
    text = answer(namespace, shell.history_manager.input_hist_raw, names)
    return type("Answer", (), {"__repr__": lambda self: text})()


class Walk:
    """Walk over the objects that names reach, within one time limit."""

    def __init__(self, until: float) -> None:
        self.until = until
        self.owners: dict[Any, set[str]] = {}
        self.kept: list[Any] = []  # keeps temporary objects alive, so that identities are unique

    def look(self, name: str, value: Any) -> dict[str, Any]:
        """Return the facts of one name."""
        whole, size = True, 0
        waiting: list[Any] = [value]
        seen: set[int] = set()
        while waiting:
            each = waiting.pop()
            if id(each) in seen:
                continue
            if len(seen) >= OBJECTS or time.perf_counter() > self.until:
                whole = False
                break
            seen.add(id(each))
            size += size_of(each)
            if is_immutable(each) or is_of_library(each):
                continue
            self.owners.setdefault(key_of(each), set()).add(name)
            parts = parts_of(each)
            if parts is None or len(parts) > ELEMENTS:
                whole = False
                parts = (parts or [])[:ELEMENTS]
            self.kept.append(parts)
            waiting.extend(parts)
        kind = type(value)
        return {
            "identity": id(value),
            "type": (str(kind.__module__) + "." + kind.__qualname__)[:400],
            "is_immutable": is_immutable(value),
            "is_walked": whole,
            "bytes": size,
            "shape": shape_of(value),
            "length": len(value) if kind in CONTAINERS or kind in MAPPINGS else None,
            "device": device_of(value),
            "shares": [],
        }

    def sharing(self, name: str) -> set[str]:
        """Return the other names that reach an object which this one reaches."""
        found: set[str] = set()
        for owners in self.owners.values():
            if name in owners:
                found |= owners
        return found - {name}


def is_immutable(value: Any, depth: int = 0) -> bool:
    """Return whether neither an object nor anything in it can change in place."""
    kind = type(value)
    if kind in PLAIN:
        return True
    if kind in (tuple, frozenset):
        small = depth < DEPTH and len(value) <= 100
        return small and all(is_immutable(each, depth + 1) for each in value)
    library = library_of(kind)
    if library == "numpy":
        numpy = sys.modules["numpy"]
        plain = issubclass(kind, (numpy.generic, numpy.dtype))
        return plain and not issubclass(kind, (numpy.void, numpy.object_))
    if library == "torch":
        return kind.__name__ in ("device", "dtype", "Size")
    return library == "pandas" and kind.__name__ in ("Timestamp", "Timedelta", "RangeIndex")


def is_of_library(value: Any) -> bool:
    """Return whether it is library code: a module, its classes and functions."""
    kind = type(value)
    if kind in ENDS:
        return True
    if issubclass(kind, type) or (kind is types.FunctionType and not of_function(value)):
        return str(value.__module__) != "__main__"
    return False


def library_of(kind: type) -> str:
    """Return the library that a class comes from."""
    return str(kind.__module__).partition(".")[0]


def key_of(value: Any) -> Any:
    """Return a key equal for objects that share mutable data: its memory, or the identity."""
    library = library_of(type(value))
    if library == "torch" and is_plain_tensor(value):
        return ("memory", value.untyped_storage().data_ptr())
    is_array = library == "numpy" and issubclass(type(value), sys.modules["numpy"].ndarray)
    if is_array and value.base is None and value.size:
        return ("memory", value.__array_interface__["data"][0])
    return id(value)


def parts_of(value: Any) -> list[Any] | None:
    """Return the objects that an object refers to, or None if they are not visible."""
    kind = type(value)
    if kind in LEAVES:
        return []
    if kind is types.FunctionType:
        return of_function(value)
    if kind is types.MethodType:
        return [value.__self__, *of_function(value.__func__)]
    if kind is functools.partial:
        return [value.func, *value.args, *value.keywords.values()]
    if issubclass(kind, type):
        return list(vars(value).values())
    library = library_of(kind)
    if library == "numpy" and issubclass(type(value), sys.modules["numpy"].ndarray):
        return of_array(value)
    if library == "pandas":
        known = of_pandas(value)
        if known is not None:
            return known
    if library == "torch" and issubclass(type(value), sys.modules["torch"].Tensor):
        grad = [value.grad] if value.is_leaf and value.grad is not None else []
        return grad if is_plain_tensor(value) else None
    return of_object(value, library)


def of_function(value: Any) -> list[Any]:
    """Return the objects that a function keeps besides its code."""
    if type(value) is not types.FunctionType:
        return [value]
    cells = [cell.cell_contents for cell in value.__closure__ or () if is_filled(cell)]
    kept = [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    return [*cells, *kept, *value.__dict__.values()]


def is_filled(cell: Any) -> bool:
    """Return whether a closure's variable has a value."""
    try:
        cell.cell_contents  # noqa: B018 (it raises)
    except ValueError:
        return False
    return True


def of_object(value: Any, library: str) -> list[Any] | None:
    """Return elements and attributes without calling the object's own class, or None if hidden."""
    kind = type(value)
    found: list[Any] = []
    for each in kind.__mro__:
        if each is object:
            continue
        if each in CONTAINERS:
            found += each.__iter__(value)
        elif each is dict:
            found += [*dict.keys(value), *dict.values(value)]
        elif each is collections.defaultdict:
            found.append(value.default_factory)
        elif hides(each) and library not in ENDING:
            return None
        for member in vars(each).values():
            if isinstance(member, types.MemberDescriptorType):
                found += slot(member, value)
    try:
        found += object.__getattribute__(value, "__dict__").values()
    except AttributeError:
        return found  # it has only slots, or elements
    return [*found, kind] if kind.__module__ == "__main__" else found


def hides(kind: type) -> bool:
    """Return whether a class is compiled and stores more than Python can show."""
    shown = [type(each) is types.MemberDescriptorType for each in vars(kind).values()]
    shown += [name in vars(kind) for name in ("__dict__", "__weakref__")]
    base = kind.__base__
    return base is not None and kind.__basicsize__ - base.__basicsize__ > 8 * sum(shown)


def slot(member: Any, value: Any) -> list[Any]:
    """Return the value of a slot, if it is set."""
    try:
        return [member.__get__(value, type(value))]
    except AttributeError:
        return []


def of_array(value: Any) -> list[Any]:
    """Return an array's objects, and the array that it is a view of."""
    found = [] if value.base is None else [value.base]
    if value.dtype.hasobject and value.size:
        found += value.ravel()[: ELEMENTS + 1].tolist()
    return [*found, *getattr(value, "__dict__", {}).values()]


def of_pandas(value: Any) -> list[Any] | None:
    """Return the arrays of a table, a column or an index."""
    blocks = getattr(getattr(value, "_mgr", None), "blocks", None)
    if blocks is not None:
        return [block.values for block in blocks]
    return [value._data] if type(value).__name__.endswith("Index") else None


def is_plain_tensor(value: Any) -> bool:
    """Return whether a tensor is a plain tensor with its own memory and no gradient history."""
    torch = sys.modules["torch"]
    is_tensor = issubclass(type(value), torch.Tensor)
    return is_tensor and value.grad_fn is None and value.layout is torch.strided


def size_of(value: Any) -> int:
    """Return the size of an object in bytes, without the objects it refers to."""
    kind = type(value)
    library = library_of(kind)
    if library == "numpy" and issubclass(type(value), sys.modules["numpy"].ndarray):
        return int(value.nbytes) if value.base is None else 0
    if library == "torch" and issubclass(type(value), sys.modules["torch"].Tensor):
        return int(value.numel() * value.element_size())
    if kind in PLAIN or kind in CONTAINERS or kind in MAPPINGS:
        return sys.getsizeof(value)
    return int(object.__sizeof__(value))


def shape_of(value: Any) -> list[int] | None:
    """Return the lengths of the axes of an array, tensor or table."""
    kind = type(value)
    if (library_of(kind), kind.__name__) not in SHAPED:
        return None
    return [int(each) for each in value.shape]


def device_of(value: Any) -> str | None:
    """Return the device of a tensor's data, or None for CPU memory."""
    if library_of(type(value)) == "torch" and issubclass(type(value), sys.modules["torch"].Tensor):
        return None if value.device.type == "cpu" else str(value.device)
    return None
