"""Lookup of the user's own modules beside the code, and reading of their imports."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchpool_scheduler.client.imports.reading import Import, Piece

MOST_FILES = 300
MOST_BYTES = 1 << 20
"""Size limit of files that are read, in bytes. Larger files are assumed to be valid."""

_LOADED = {".py", ".pyc", ".so", ".pyd"}


@dataclass(frozen=True, slots=True)
class OwnModules:
    """Modules below a folder. ``sent``: paths below it that are sent, or None for all."""

    root: Path
    sent: frozenset[str] | None = None

    def has(self, module: str) -> bool | None:
        """Return whether a module exists. None if its first part may belong to the interpreter.

        A folder without ``__init__.py`` is overridden by a package of the interpreter.
        """
        head = module.partition(".")[0]
        if not self._is_sent(f"{head}/__init__.py"):
            return True if self._has_file(head) else None
        return self._has_file(module) or self.is_folder(module)

    def is_folder(self, module: str) -> bool:
        """Return whether it is a folder here, which may be a package without ``__init__.py``."""
        return (self.root / module.replace(".", "/")).is_dir()

    def left_out(self, module: str) -> str | None:
        """Return the file of a module that exists in the folder and is not sent."""
        if self.sent is None:
            return None
        here = [each for each in _paths(module.partition(".")[0]) if (self.root / each).is_file()]
        return next((each for each in here if each not in self.sent), None)

    def files_of(self, found: Import, importer: str) -> Iterator[str]:
        """Yield the user's own files that an import reads."""
        base = found.module
        if found.level:
            package = Path(importer).parts[: -found.level]
            base = ".".join([*package, *filter(None, [base])])
        parts = base.split(".") if base else []
        names = [".".join(parts[: end + 1]) for end in range(len(parts))]
        inner = [".".join([*parts, name]) for name in found.names]
        for name in [*names, *inner]:
            yield from (each for each in _paths(name) if self._is_sent(each))

    def read(self, path: str) -> list[Piece]:
        """Return a file as a piece. Empty if it is too large or not valid Python."""
        file = self.root / path
        try:
            if file.stat().st_size > MOST_BYTES:
                return []
            return [piece_of(path, file.read_bytes())]
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            return []

    def _has_file(self, module: str) -> bool:
        """Return whether it exists as a file: Python source, bytecode or an extension module."""
        place = self.root / module.replace(".", "/")
        beside = place.parent.glob(f"{place.name}.*") if place.parent.is_dir() else ()
        return any(
            each.suffix in _LOADED and self._is_sent(str(each.relative_to(self.root)))
            for each in beside
        )

    def _is_sent(self, path: str) -> bool:
        return (self.root / path).is_file() and (self.sent is None or path in self.sent)


def piece_of(where: str, content: bytes) -> Piece:
    """Return source text as a piece. Errors: SyntaxError, ValueError, as from ``ast.parse``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Piece(where, ast.parse(content), content.decode("utf-8", "replace"))


def _paths(module: str) -> tuple[str, str]:
    path = module.replace(".", "/")
    return f"{path}.py", f"{path}/__init__.py"
