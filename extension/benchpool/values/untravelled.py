"""Values that cannot be sent in any format: their description, and their position in a value."""

from __future__ import annotations

import collections
from typing import Any

NEVER = {
    "_thread.lock": "a lock",
    "_thread.RLock": "a lock",
    "threading.Condition": "a lock",
    "threading.Event": "a lock",
    "threading.Thread": "a thread",
    "multiprocessing.pool.Pool": "a pool of processes",
    "concurrent.futures.thread.ThreadPoolExecutor": "a pool of threads",
    "concurrent.futures.process.ProcessPoolExecutor": "a pool of processes",
    "subprocess.Popen": "a running process",
    "_io.TextIOWrapper": "an open file",
    "_io.BufferedReader": "an open file",
    "_io.BufferedWriter": "an open file",
    "_io.BufferedRandom": "an open file",
    "_io.FileIO": "an open file",
    "mmap.mmap": "an open file",
    "zipfile.ZipFile": "an open file",
    "tarfile.TarFile": "an open file",
    "h5py._hl.files.File": "an open file",
    "socket.socket": "a connection",
    "sqlite3.Connection": "a connection to a database",
    "sqlite3.Cursor": "a connection to a database",
    "generator": "a generator, whose state cannot be saved",
    "coroutine": "a coroutine, whose state cannot be saved",
    "async_generator": "a generator, whose state cannot be saved",
    "frame": "a frame of a running program",
    "module": "a module",
    "torch.cuda.streams.Stream": "a CUDA handle",
    "torch.cuda.streams.Event": "a CUDA handle",
    "torch.cuda.graphs.CUDAGraph": "a CUDA handle",
    "torch.utils.data.dataloader._SingleProcessDataLoaderIter": "a loader in the middle of a pass",
    "torch.utils.data.dataloader._MultiProcessingDataLoaderIter": (
        "a loader in the middle of a pass"
    ),
}
"""Types bound to their process, by name: even a pickle would not restore them."""

LOOKED_AT = 20_000
"""Maximum number of objects of a value that are examined."""


class CannotTravel(Exception):
    """A value, or a part of it, cannot be written; the text names it and the reason."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where} is {why}" if where else why)
        self.where = where
        self.why = why


class TooLargeToTravel(CannotTravel):
    """A value is larger than the remaining size limit."""

    def __init__(self, where: str, size: int, left: int) -> None:
        super().__init__(where, f"too large: {mib(size)}, with {mib(left)} left of the limit")


def mib(size: int) -> str:
    """Return a size as text.

    >>> mib(3 << 20), mib(1 << 32)
    ('3.0 MiB', '4.0 GiB')
    """
    return f"{size / (1 << 30):.1f} GiB" if size >= 1 << 30 else f"{size / (1 << 20):.1f} MiB"


def kind_of(value: Any) -> str:
    """Return the name of a value's type, with its module unless it is built in.

    >>> kind_of([]), kind_of(collections.deque())
    ('list', 'collections.deque')
    """
    kind = type(value)
    module = str(kind.__module__)
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def word_for(value: Any) -> str | None:
    """Return a description of a value that can never be sent, or None.

    >>> word_for(each for each in ())
    'a generator, whose state cannot be saved'
    >>> word_for([1]) is None
    True
    """
    return NEVER.get(kind_of(value))


def find(name: str, value: Any) -> tuple[str, str] | None:
    """Return the position and description of the first part that can never be sent, or None.

    >>> import threading
    >>> find("run", {"log": [threading.Lock()]})
    ("run['log'][0]", 'a lock')
    """
    waiting = collections.deque([(name, value)])
    seen: dict[int, Any] = {}
    while waiting and len(seen) < LOOKED_AT:
        where, each = waiting.popleft()
        if id(each) in seen:
            continue
        seen[id(each)] = each
        word = word_for(each)
        if word is not None:
            return where, word
        if isinstance(each, dict):
            waiting.extend((f"{where}[{_short(key)}]", item) for key, item in list(each.items()))
        elif isinstance(each, (list, tuple, set, frozenset, collections.deque)):
            waiting.extend((f"{where}[{number}]", item) for number, item in enumerate(each))
        inside = getattr(each, "__dict__", None)
        if isinstance(inside, dict) and not isinstance(each, type):
            waiting.extend((f"{where}.{key}", item) for key, item in inside.items())
    return None


def step(value: Any, key: Any) -> str:
    """Return the Python expression from a value to what it holds under a key.

    >>> step({}, "log"), step(object(), "lock")
    ("['log']", '.lock')
    """
    return f"[{key!r}]"[:40] if isinstance(value, dict) else f".{key}"


def _short(key: Any) -> str:
    text = repr(key) if isinstance(key, (str, int, float, bool)) else kind_of(key)
    return text if len(text) <= 40 else f"{text[:37]}…"


def no_format(value: Any, *, pickle: bool) -> str:
    """Return why a value has no format here.

    >>> no_format(print, pickle=False)
    'a function; code is sent as cells'
    """
    word = word_for(value)
    if word is not None:
        return word
    if callable(value) and hasattr(value, "__name__"):
        return "a function; code is sent as cells"
    text = f"an object of the type {kind_of(value)}, which has no safe format"
    return text if pickle else f"{text}; allow pickles to send it"
