"""Files that a cell writes and another reads: told, since what is there may be good, or old.

Folders that a cell makes go along with who uses them: those that are empty are not sent.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from benchpool.cells import facts, magics
from benchpool.cells.def_use import DefUse
from benchpool.cells.notebook_cells import NotebookCell, Problem
from benchpool.cells.search import Search

_MODES = frozenset("rwaxbt+")
_SHORTEST = 3
_SHELL = frozenset(["system", "getoutput"])
_TARGET = re.compile(r">\s*([\w./-]{3,})")


@dataclass(frozen=True, slots=True)
class _FileUse:
    """A call that writes or reads a file, by the texts and names that its path is made of."""

    writes: bool
    texts: frozenset[str]
    names: frozenset[str]
    is_folder: bool = False
    lists: bool = False

    def meets(self, other: _FileUse) -> bool:
        """Say whether both may mean one file: a text of both, or a name where one has no text."""
        if self.texts and other.texts:
            return not self.texts.isdisjoint(other.texts)
        if self.lists and not self.texts and not self.names:  # of the folder where it stands
            return all("/" not in each for each in other.texts)
        return not self.names.isdisjoint(other.names)

    def lies_in(self, folder: _FileUse) -> bool:
        """Say whether this may be in a folder: by how its text begins, or by a name."""
        for text in folder.texts:
            if any(each == text or each.startswith(f"{text.rstrip('/')}/") for each in self.texts):
                return True
        return not folder.texts and not self.names.isdisjoint(folder.names)


def folders_needed(search: Search) -> Iterator[tuple[int, str]]:
    """Yield cells that stay out and make a folder that cells use which go along, and its name.

    One that trains, or that failed, is not taken along for a folder.
    """
    used = _by_cell(search)
    for number in sorted(used.keys() - search.why.keys() - set(search.failed)):
        made = [each for each in used[number] if each.is_folder]
        if not made or search.changes.effects[number].trains:
            continue
        later = [each for at in used.keys() & search.why.keys() if at > number for each in used[at]]
        for folder in made:
            if any(each.lies_in(folder) for each in later):
                yield number, min(folder.texts or folder.names, default="")
                break


def problems(cells: Sequence[NotebookCell], search: Search) -> Iterator[Problem]:
    """Yield the cells that stay out and write what a cell that goes along reads."""
    used = _by_cell(search)
    told: set[int] = set()
    for reader in sorted(search.why.keys() & used.keys()):
        reads = [each for each in used[reader] if not each.writes]
        for number in reversed([each for each in used if each < reader]):
            writes = [each for each in used[number] if each.writes]
            both = [(mine, its) for mine in reads for its in writes if mine.meets(its)]
            if not both:
                continue
            if number not in search.why and number not in told:
                told.add(number)
                text = (
                    f"cell {number + 1} writes a file ({_said(both[0])}) that cell {reader + 1} "
                    "reads, and stays out: the job reads it as it is; tick that cell to write it "
                    "anew"
                )
                yield Problem("warning", text, cells[reader].id)
            break


def _by_cell(search: Search) -> dict[int, list[_FileUse]]:
    outside = search.changes.code.imports.keys()
    used = {
        number: _uses(search.def_uses[number].body, outside)
        for number in search.above
        if _may_use(search.def_uses[number])
    }
    modules = {number: name for number, read in search.reads.items()
               if number < search.last and (name := magics.writes_file(read))}  # fmt: skip
    for number, name in modules.items():
        used[number] = [_FileUse(True, frozenset([name]), frozenset())]
    for number in search.above if modules else ():
        paths = search.def_uses[number].imports.values()
        texts = frozenset(f"{path.partition('.')[0]}.py" for path in paths)
        used.setdefault(number, []).append(_FileUse(False, texts, frozenset()))
    return dict(sorted(used.items()))


def _may_use(cell: DefUse) -> bool:
    inner = [call for found in cell.functions.values() for each in found for call in each.calls]
    words = {call.chain[-1] for call in [*cell.calls, *inner]}
    return not _SHELL.isdisjoint(words) or any(map(facts.file_use, words))


def _said(both: tuple[_FileUse, _FileUse]) -> str:
    mine, its = both
    shared = (mine.texts & its.texts) or (mine.names & its.names)
    common = sorted(shared or its.texts or its.names) or ["open()"]
    return f"`{common[0]}`"


def _uses(body: Sequence[ast.AST], outside: Collection[str]) -> list[_FileUse]:
    found = []
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call):
                word = node.func.attr if isinstance(node.func, ast.Attribute) else None
                word = node.func.id if isinstance(node.func, ast.Name) else word
                how = facts.file_use(word or "")
                if word in _SHELL:
                    found += _sent_to(node)
                if how is not None:
                    made = facts.makes_folder(word or "")
                    lists = facts.lists_folder(word or "")
                    use = _use(node, how, outside)
                    found.append(replace(use, is_folder=made, lists=lists))
    return found


def _sent_to(node: ast.Call) -> list[_FileUse]:
    """Return the files to which a line of the shell sends its output (``!ls > names.txt``)."""
    texts = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
    names = [name for text in texts if isinstance(text, str) for name in _TARGET.findall(text)]
    return [_FileUse(True, frozenset([each]), frozenset()) for each in names]


def _use(node: ast.Call, how: str, outside: Collection[str]) -> _FileUse:
    parts = [*node.args, *[each.value for each in node.keywords]]
    if isinstance(node.func, ast.Attribute):
        parts.append(node.func.value)
    inner = [each for part in parts for each in ast.walk(part)]
    texts = {each.value for each in inner if isinstance(each, ast.Constant)}
    modes = {each for each in texts if isinstance(each, str) and set(each) <= _MODES}
    said = frozenset(
        each for each in texts - modes if isinstance(each, str) and len(each) >= _SHORTEST
    )
    names = frozenset(each.id for each in inner if isinstance(each, ast.Name))
    opened = how == "opens"
    in_place = any("+" in each for each in modes)  # ``np.load(name, mmap_mode="r+")``
    writes = (
        how == "writes" or in_place or (opened and any(set(each) & set("wax+") for each in modes))
    )
    return _FileUse(writes, said, names - frozenset(outside))
