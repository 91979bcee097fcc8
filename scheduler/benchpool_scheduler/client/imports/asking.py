"""Queries an interpreter for its modules, without importing them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from benchpool_scheduler.client.imports.unseen import NOTHING, Unseen

ANSWER_S = 30.0

_PROBE = """
import difflib, importlib.machinery, importlib.util, json, os, pkgutil, sys
if sys.path and sys.path[0] == "":
    del sys.path[0]
asked = json.load(sys.stdin)

def lacks(name):
    head, *rest = name.split(".")
    if head in sys.modules or head in sys.builtin_module_names:
        return "", None
    top = spec = importlib.util.find_spec(head)
    if spec is None:
        return head, None
    for part in rest:
        if not spec.submodule_search_locations:
            break
        places, head = list(spec.submodule_search_locations), head + "." + part
        spec = importlib.machinery.PathFinder.find_spec(head, places)
        if spec is None:
            return head, None
    return "", top.origin

def hidden(file):
    if not asked["home"] or not file or not os.path.isfile(file):
        return ""
    if os.path.realpath(file).startswith(os.path.realpath(asked["home"]) + os.sep):
        return "" if asked["shared"] else "home"
    seen = os.stat(file)
    late = asked["since"] and min(seen.st_ctime, seen.st_mtime) > asked["since"]
    return "late" if late else ""

found, there = {}, None
for name in asked["modules"]:
    part, file = lacks(name)
    if part:
        if there is None:
            there = [each.name for each in pkgutil.iter_modules()]
            there += list(sys.builtin_module_names)
        similar = difflib.get_close_matches(part, there, n=1, cutoff=0.8)
        found[name] = [part, (similar or [""])[0], "nowhere"]
    elif hidden(file):
        found[name] = [name.split(".")[0], "", hidden(file)]
print(json.dumps(found))
"""


NOWHERE = "nowhere"
REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class MissingImport:
    """Module that a job does not find.

    Attributes:
        part: Its first part, or a later one. ``similar``: a similar name that exists.
        found: ``nowhere``, or where it exists only here: in a ``home`` that jobs do not see,
            installed too ``late`` to be in the image, or ``refused`` because its package cannot be
            sent.
    """

    part: str
    similar: str
    found: str = NOWHERE


def _of_delta(lack: MissingImport, unseen: Unseen) -> MissingImport | None:
    """Return the missing module in view of packages sent along. None if one of them contains it."""
    if lack.found == NOWHERE:
        return lack
    if lack.part in unseen.carried:
        return None
    return replace(lack, found=REFUSED) if lack.part in unseen.refused else lack


def job_environ(environ: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a job's Python. It has no ``PYTHON*`` variables except those given.

    >>> job_environ({"PATH": "/bin", "PYTHONPATH": "/mine"}, {"PYTHONHASHSEED": "0"})
    {'PATH': '/bin', 'PYTHONHASHSEED': '0'}
    """
    kept = {name: value for name, value in environ.items() if not name.startswith("PYTHON")}
    return {**kept, **given}


def lacking(
    python: str, modules: Sequence[str], environ: Mapping[str, str], unseen: Unseen = NOTHING
) -> Mapping[str, MissingImport] | None:
    """Return those modules that an interpreter does not have. None if it does not answer.

    A missing submodule may still be created by its package during the import.

    >>> import os, sys
    >>> lacking(sys.executable, ["json", "os.path", "jso"], os.environ)
    {'jso': MissingImport(part='jso', similar='json', found='nowhere')}
    """
    if not modules:
        return {}
    try:
        done = subprocess.run(
            [python, "-c", _PROBE],
            input=json.dumps({"modules": list(modules), **asdict(unseen)}),
            env=dict(environ),
            cwd="/",
            capture_output=True,
            text=True,
            timeout=ANSWER_S,
            check=True,
        )
        found = json.loads(done.stdout.splitlines()[-1])
        lacks = {name: MissingImport(*fields) for name, fields in found.items()}
        return {name: kept for name, lack in lacks.items() if (kept := _of_delta(lack, unseen))}
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None
