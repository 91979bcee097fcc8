"""Files that one cell writes and another reads: reported, since the existing file may be stale.

Cells that make a folder are included with the cells that use it: empty folders are not sent.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from benchpool.cells import facts, magics, shell_files
from benchpool.cells.def_use import DefUse
from benchpool.cells.notebook_cells import NotebookCell, Problem
from benchpool.cells.search import Search
from benchpool.cells.shell_files import FileUse

_MODES = frozenset("rwaxbt+")


def needed(search: Search) -> Iterator[tuple[int, str]]:
    """Yield excluded cells that make what included cells use, and why they are needed.

    This applies to folders and to the files of ``%%writefile``. A cell that trains, or that failed,
    is not included for a folder.
    """
    used = _by_cell(search)
    yield from _folders_needed(search, used)
    yield from _written_needed(search, used)


def _folders_needed(
    search: Search, used: Mapping[int, Sequence[FileUse]]
) -> Iterator[tuple[int, str]]:
    for number in sorted(used.keys() - search.why.keys() - set(search.failed)):
        made = [each for each in used[number] if each.is_folder]
        if not made or search.changes.effects[number].trains:
            continue
        later = [each for at in used.keys() & search.why.keys() if at > number for each in used[at]]
        for folder in made:
            if any(each.lies_in(folder) for each in later):
                name = min(folder.texts or folder.names, default="")
                yield number, f"makes the folder `{name}`"
                break


def _written_needed(
    search: Search, used: Mapping[int, Sequence[FileUse]]
) -> Iterator[tuple[int, str]]:
    """Yield the last ``%%writefile`` before each reader of its file, and those it appends to."""
    writers = {n: name for n, read in search.reads.items() if (name := magics.writes_file(read))}
    for reader in sorted(used.keys() & search.why.keys()):
        reads = [each for each in used[reader] if not each.writes]
        open_ = list(reads)
        for number in sorted((n for n in writers if n < reader), reverse=True):
            its = used[number]
            named = any(each.texts or each.held for each in its)
            met = [each for each in open_ if not named or any(map(each.meets, its))]
            if met and number not in search.why and number not in search.failed:
                yield number, f"writes `{writers[number]}`"
            if not magics.appends_to_file(search.reads[number]):
                open_ = [each for each in open_ if each not in met]


def problems(cells: Sequence[NotebookCell], search: Search) -> Iterator[Problem]:
    """Yield the excluded cells that write a file that an included cell reads."""
    used = _by_cell(search)
    reported: set[int] = set()
    for reader in sorted(search.why.keys() & used.keys()):
        reads = [each for each in used[reader] if not each.writes]
        for number in reversed([each for each in used if each < reader]):
            writes = [each for each in used[number] if each.writes]
            both = [(mine, its) for mine in reads for its in writes if mine.meets(its)]
            if not both:
                continue
            if number not in search.why and number not in reported:
                reported.add(number)
                text = (
                    f"cell {number + 1} writes a file ({_described(both[0])}) that cell "
                    f"{reader + 1} reads, and is not included: the job reads the existing file; "
                    f"tick cell {number + 1} to write it again"
                )
                yield Problem("warning", text, cells[reader].id)
            break


def _by_cell(search: Search) -> dict[int, list[FileUse]]:
    imports = search.changes.code.imports
    used = {
        number: _uses(search.def_uses[number].body, imports)
        for number in search.above
        if _may_use(search.def_uses[number])
    }
    modules = {number: name for number, read in search.reads.items()
               if number < search.last and (name := magics.writes_file(read))}  # fmt: skip
    for number, name in modules.items():
        used[number] = shell_files.of_word(name, writes=True)
    for number in search.above if modules else ():
        made = search.def_uses[number]
        paths = [*made.imports.values(), *([made.star] if made.star else [])]
        texts = frozenset(f"{path.partition('.')[0]}.py" for path in paths)
        used.setdefault(number, []).append(FileUse(False, texts, frozenset()))
    held = _texts_held(search)
    return {
        number: [
            replace(each, held=frozenset[str]().union(*(held.get(n, ()) for n in each.names)))
            for each in used[number]
        ]
        for number in sorted(used)
    }


def _texts_held(search: Search) -> dict[str, set[str]]:
    """Return the strings that cells bind to names (``name = "made.py"``)."""
    found: dict[str, set[str]] = {}
    for made in search.def_uses.values():
        for node in made.body:
            match node:
                case ast.Assign(
                    targets=[ast.Name(id=name)],
                    value=ast.Constant(value=str() as text)
                    | ast.Call(args=[ast.Constant(value=str() as text)], keywords=[]),
                ):
                    found.setdefault(name, set()).add(text.removeprefix("./"))
    return found


def _may_use(cell: DefUse) -> bool:
    inner = [call for found in cell.functions.values() for each in found for call in each.calls]
    every = [*cell.calls, *inner]
    words = {call.chain[-1] for call in every}
    if not shell_files.CALL_WORDS.isdisjoint(words) or any(map(facts.file_use, words)):
        return True
    return any(call.chain[:2] == ("sys", "path") for call in every)


def _described(both: tuple[FileUse, FileUse]) -> str:
    mine, its = both
    shared = (mine.texts & its.texts) or (mine.names & its.names)
    common = sorted(shared or its.texts or its.names) or ["open()"]
    return f"`{common[0]}`"


def _uses(body: Sequence[ast.AST], imports: Mapping[str, str]) -> list[FileUse]:
    found: list[FileUse] = []
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call):
                word = node.func.attr if isinstance(node.func, ast.Attribute) else None
                word = node.func.id if isinstance(node.func, ast.Name) else word
                how = facts.file_use(word or "")
                found += shell_files.of_call(node, imports)
                if how is not None:
                    made = facts.makes_folder(word or "")
                    lists = facts.lists_folder(word or "")
                    use = _use(node, how, imports.keys())
                    found.append(replace(use, is_folder=made, lists=lists))
    return found


def _use(node: ast.Call, how: str, outside: Collection[str]) -> FileUse:
    parts = [*node.args, *[each.value for each in node.keywords]]
    if isinstance(node.func, ast.Attribute):
        parts.append(node.func.value)
    inner = [each for part in parts for each in ast.walk(part)]
    texts = {each.value for each in inner if isinstance(each, ast.Constant)}
    modes = {each for each in texts if isinstance(each, str) and set(each) <= _MODES}
    file_texts = frozenset(
        each
        for each in texts - modes
        if isinstance(each, str) and len(each) >= shell_files.SHORTEST
    )
    names = frozenset(each.id for each in inner if isinstance(each, ast.Name))
    opened = how == "opens"
    in_place = any("+" in each for each in modes)  # ``np.load(name, mmap_mode="r+")``
    writes = (
        how == "writes" or in_place or (opened and any(set(each) & set("wax+") for each in modes))
    )
    return FileUse(writes, file_texts, names - frozenset(outside))
