"""Check of the imports in pieces of code, with messages about missing modules."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchpool_scheduler.client.imports.asking import REFUSED, MissingImport, lacking
from benchpool_scheduler.client.imports.files_above import modules_on_path
from benchpool_scheduler.client.imports.own_files import MOST_FILES, OwnModules
from benchpool_scheduler.client.imports.reading import Piece, imports_of, is_loose
from benchpool_scheduler.client.imports.unseen import NOTHING, Unseen

PACKAGES = {
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "git": "GitPython",
    "PIL": "Pillow",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "PyYAML",
}
"""Packages whose name differs from that of their module."""

PROVIDED = frozenset({"benchpool"})
"""Modules that every job has, whatever its Python."""


@dataclass(frozen=True, slots=True)
class MissingModule:
    """Import that will fail (``sure``) or may fail.

    Attributes:
        where: Cell or file that contains it. ``line``: 0 for the program that runs the code.
        text: Problem and remedy, without a full stop.
    """

    where: str
    line: int
    sure: bool
    text: str


def missing(
    pieces: Sequence[Piece],
    root: Path,
    python: str,
    environ: Mapping[str, str],
    *,
    sent: frozenset[str] | None = None,
    loose: bool = False,
    unseen: Unseen = NOTHING,
) -> list[MissingModule]:
    """Return the imports that would fail, in the pieces and in the user's files that they import.

    Args:
        root: Folder where the code finds its own modules.
        python: Interpreter that will run it, as a path on this machine.
        environ: This process's environment with the job's variables. A ``PYTHONPATH`` comes from
            the job only.
        sent: Paths below ``root`` that are sent. None if the job sees the folder itself.
        loose: Whether code may create modules, so that no failure is certain.
        unseen: Modules that exist here and not in the job.
    """
    if pieces and unseen.hides(python):
        text = (
            f"{python}, the Python of this job, is in your home, which jobs here do not see: "
            "choose one that is in the image"
        )
        return [MissingModule(pieces[0].where, 1, True, text)]
    own = OwnModules(root, sent)
    read = list(with_own(pieces, own))
    loose = loose or any(is_loose(piece.text) for piece, _ in read)
    wanted = [
        (piece.where, replace(each, sure=each.sure and sure and not loose))
        for piece, sure in read
        for each in imports_of(piece.tree)
        if not each.level and each.module.partition(".")[0] not in PROVIDED
    ]
    elsewhere = modules_on_path([piece for piece, _ in read], root)
    wanted = [it for it in wanted if it[1].module.partition(".")[0] not in elsewhere]
    ours = {each.module: own.has(each.module) for _, each in wanted}
    others = sorted(module for module, there in ours.items() if there is None)
    lacks = lacking(python, others, environ, unseen)
    found: dict[str, MissingModule] = {}
    for where, each in wanted:
        lack = None if lacks is None else lacks.get(each.module)
        problem = _problem(each.module, ours[each.module], lack, own, python)
        if problem is not None:
            known, text = problem
            sure = known and each.sure
            if text not in found or (sure and not found[text].sure):
                found[text] = MissingModule(where, each.line, sure, text)
    return list(found.values())


def _problem(
    module: str, ours: bool | None, lack: MissingImport | None, own: OwnModules, python: str
) -> tuple[bool, str] | None:
    """Return whether the failure is certain, and its message. None if the module exists."""
    if ours is False:
        return True, f"there is no `{module}` in {own.root}"
    if lack is None or own.is_folder(module.partition(".")[0]):
        return None
    left_out = own.left_out(module)
    if left_out is not None:
        return True, (
            f"`{module}` is {left_out}, which is not sent with the job: to send it, add a line "
            f"`!{left_out}` to .benchpoolignore"
        )
    if lack.found != "nowhere":
        where = (
            "is installed in your home, which jobs here do not see"
            if lack.found == "home"
            else "was installed after this server started, and the job starts from its image"
        )
        todo = "install it within the job, or ask for an image that has it"
        return lack.found in ("home", REFUSED), f"`{lack.part}` {where}: {todo}"
    hint = f"; did you mean `{lack.similar}`?" if lack.similar else ""
    if "." in lack.part:
        return False, f"`{lack.part}` was not found in {python}, the Python of this job{hint}"
    package = PACKAGES.get(lack.part)
    install = shlex.join([python, "-m", "pip", "install", package]) if package else ""
    how = f"run `{install}`" if install else "install its package there"
    todo = hint or f": {how}, or choose another Python"
    return True, f"there is no module `{lack.part}` in {python}, the Python of this job{todo}"


def with_own(pieces: Sequence[Piece], own: OwnModules) -> Iterator[tuple[Piece, bool]]:
    """Yield the pieces and the imported files of the user, and whether the import is certain."""
    seen = {piece.where for piece in pieces}
    waiting = [(piece, True) for piece in pieces]
    perhaps: list[str] = []
    while waiting:
        piece, sure = waiting.pop(0)
        yield piece, sure
        importer = piece.where if piece.where.endswith(".py") else ""
        for each in imports_of(piece.tree):
            for path in own.files_of(each, importer):
                if sure and not each.sure:
                    perhaps.append(path)
                elif path not in seen and len(seen) < MOST_FILES:
                    seen.add(path)
                    waiting.extend((read, sure) for read in own.read(path))
        if not waiting:
            # All certain imports are followed. Now follow the uncertain ones.
            fresh = [path for path in dict.fromkeys(perhaps) if path not in seen]
            perhaps.clear()
            seen.update(fresh[:MOST_FILES])
            waiting.extend((read, False) for path in fresh for read in own.read(path))
