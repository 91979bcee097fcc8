"""Which distributions a job of this Python's image does not find: run by that Python, as a file.

Standard library only, for every Python from 3.9. On its input stands what a job does not see (the
fields of ``Unseen``), on its output the distributions, as JSON. Nothing of them is imported.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import metadata
from typing import Any


def _unseen(file: str, asked: Any) -> bool:
    """Tell whether a file is not in the job: in a home of ours alone, or newer than the image."""
    home = asked["home"]
    if home and os.path.realpath(file).startswith(os.path.realpath(home) + os.sep):
        return not asked["shared"]
    seen = os.stat(file)
    return bool(asked["since"]) and min(seen.st_ctime, seen.st_mtime) > asked["since"]


def _modules(one: metadata.Distribution) -> list[str]:
    """Return the names that can be imported of it, as its list of files says."""
    found = set()
    for file in one.files or ():
        head, *rest = file.parts
        name = head if rest else head.partition(".")[0] if head.endswith((".py", ".so")) else ""
        if name.isidentifier() and name != "__pycache__":
            found.add(name)
    return sorted(found)


def main() -> None:
    """Answer."""
    asked = json.load(sys.stdin)
    found: dict[str, Any] = {}
    for one in metadata.distributions():
        try:
            name, folder = one.metadata["Name"], str(one._path)  # type: ignore[attr-defined]
            key = name.lower().replace("_", "-")
            if key in found:
                continue  # what Python finds first is what it imports
            mark = os.path.join(folder, "METADATA")
            is_unseen = os.path.isfile(mark) and _unseen(mark, asked)
            source = json.loads(one.read_text("direct_url.json") or "null")
            found[key] = is_unseen and {
                "name": name,
                "version": one.version,
                "folder": folder,
                "changed": os.stat(folder).st_mtime_ns,
                "source": source,
                "modules": _modules(one),
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue  # a broken installation is none
    json.dump([found[key] for key in sorted(found) if found[key]], sys.stdout)


if __name__ == "__main__":
    main()
