"""Import hook that gives every Python of the job the modules as they were at submission.

The runner writes this file as ``sitecustomize.py``, with ``modules.json`` and the sources beside
it. Python finds modules as usual. For a listed file, it reads the stored source instead, so that a
later edit or checkout changes nothing. ``__file__`` stays that of the original file. Standard
library only, for every Python from 3.9.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

LIST = "modules.json"


class FrozenLoader(SourceFileLoader):
    """Loader that loads a module from the stored source of its file."""

    def __init__(self, name: str, path: str, kept: str) -> None:
        super().__init__(name, path)
        self._kept = kept

    def get_data(self, path: str) -> bytes:
        """Return the stored source of the module, and any other data as it is on disk."""
        with open(self._kept if path == self.path else path, "rb") as file:
            return file.read()

    def get_code(self, fullname: str) -> CodeType:
        """Compile the source without bytecode caches, which may belong to another source."""
        return self.source_to_code(self.get_data(self.path), self.path)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module; tracebacks show the lines of the stored source."""
        import linecache

        text = importlib.util.decode_source(self.get_data(self.path))
        linecache.cache[self.path] = (len(text), None, text.splitlines(True), self.path)
        super().exec_module(module)


class FrozenFinder:
    """Finder of modules with stored sources. ``kept``: the copies by real path."""

    def __init__(self, kept: dict[str, str]) -> None:
        self._kept = kept
        self._names = {_name(path) for path in kept}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the spec of a stored module, or None for any other."""
        if name.rpartition(".")[2] not in self._names:
            return None
        spec = PathFinder.find_spec(name, path, target)
        origin = self._gone(name, path) if spec is None else spec.origin
        kept = None if origin is None else self._kept.get(os.path.realpath(origin))
        if origin is None or kept is None:
            return None
        inside = [os.path.dirname(origin)] if os.path.basename(origin) == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            name,
            origin,
            loader=FrozenLoader(name, origin, kept),
            submodule_search_locations=inside,
        )

    def _gone(self, name: str, path: Any) -> str | None:
        """Return the former path of a module whose file no longer exists, or None."""
        tail = name.rpartition(".")[2]
        for folder in sys.path if path is None else path:
            for file in (f"{tail}/__init__.py", f"{tail}.py"):
                there = os.path.join(os.path.abspath(folder or "."), file)
                if os.path.realpath(there) in self._kept:
                    return there
        return None


def _name(path: str) -> str:
    folder, file = os.path.split(path)
    return os.path.basename(folder) if file == "__init__.py" else file[:-3]


def install(folder: str) -> None:
    """Let this Python find the modules stored in a folder."""
    with open(os.path.join(folder, LIST), encoding="utf-8") as file:
        kept = {path: os.path.join(folder, name) for path, name in json.load(file).items()}
    sys.meta_path.insert(0, FrozenFinder(kept))


def _other_customization(folder: str) -> None:
    """Run the next ``sitecustomize`` on the path, if there is one."""
    # Only later entries: an earlier ``sitecustomize`` has already run, and has led here.
    places = [os.path.abspath(each) for each in sys.path]
    after = sys.path[places.index(folder) + 1 :] if folder in places else []
    spec = PathFinder.find_spec("sitecustomize", after)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


if __name__ == "sitecustomize":
    _here = os.path.dirname(os.path.abspath(__file__))
    install(_here)
    _other_customization(_here)
