"""Sources of the user's own modules that code imports, as they are when a job is sent."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchpool_scheduler.client.imports.own_files import MOST_BYTES, MOST_FILES, OwnModules
from benchpool_scheduler.client.imports.reading import Import, Piece

ALL_BYTES = 8 << 20
"""Size limit for all modules of a job together, in characters."""

_ADDED = re.compile(r"sys\.path\.(?:append\(|insert\(\s*\d+\s*,)\s*[rf]?['\"]([^'\"\n]+)['\"]")


@dataclass(frozen=True, slots=True)
class OwnSources:
    """Sources by absolute path. ``left``: number of modules omitted because of the limits."""

    sources: dict[str, str]
    left: int = 0

    @property
    def metadata(self) -> dict[str, object]:
        """Entries for the metadata of a job's notebook.

        >>> OwnSources({}).metadata, OwnSources({"/a.py": ""}, left=2).metadata
        ({}, {'modules': {'/a.py': ''}, 'modules_left': 2})
        """
        found: dict[str, object] = {"modules": self.sources} if self.sources else {}
        return found | ({"modules_left": self.left} if self.left else {})


def own_sources(pieces: Sequence[Piece], folders: Sequence[Path]) -> OwnSources:
    """Return the modules below some folders that code may import, directly or indirectly.

    All modules of a package are included, because it may load them by name.

    Args:
        folders: Folders where Python looks for modules, in order. Folders that the code adds to
            ``sys.path`` as literals are searched too, relative to the first one.
    """
    more = [folders[0] / each for piece in pieces for each in _ADDED.findall(piece.text)]
    roots = [OwnModules(each) for each in dict.fromkeys([*folders, *more])]
    waiting: list[tuple[OwnModules, str, ast.Module]] = [(roots[0], "", it.tree) for it in pieces]
    found: dict[str, str] = {}
    seen: set[str] = set()
    size = left = 0
    while waiting:
        of, importer, tree = waiting.pop()
        for own, path in _reached(tree, importer, of, roots):
            absolute = str((own.root / path).resolve())
            if absolute in seen:
                continue
            seen.add(absolute)
            text = _text(Path(absolute))
            if text is None or len(found) >= MOST_FILES or size + len(text) > ALL_BYTES:
                left += 1
                continue
            found[absolute] = text
            size += len(text)
            waiting += [(own, path, parsed) for parsed in _parsed(text)]
    return OwnSources(dict(sorted(found.items())), left)


def _reached(
    tree: ast.Module, importer: str, of: OwnModules, roots: Sequence[OwnModules]
) -> Iterator[tuple[OwnModules, str]]:
    for each in _imports(tree):
        for own in [of] if each.level else roots:
            for path in own.files_of(each, importer):
                yield own, path
                head = path.partition("/")[0]
                if (own.root / head / "__init__.py").is_file():
                    for other in sorted((own.root / head).rglob("*.py")):
                        yield own, other.relative_to(own.root).as_posix()


def _imports(tree: ast.Module) -> Iterator[Import]:
    """Yield every import, even if its failure is handled."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(each.name, node.lineno) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = tuple(each.name for each in node.names)
            yield Import(node.module or "", node.lineno, True, node.level, names)


def _text(file: Path) -> str | None:
    try:
        return file.read_text("utf-8") if file.stat().st_size <= MOST_BYTES else None
    except (OSError, UnicodeDecodeError):
        return None


def _parsed(text: str) -> Iterator[ast.Module]:
    try:
        yield ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
