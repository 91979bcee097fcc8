"""Script run by the notebook's Python: finds the distributions that a job's image lacks.

Standard library only, for every Python from 3.9. Standard input holds what a job does not see (the
fields of ``Unseen``), standard output the distributions, as JSON. It imports none of them.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import metadata
from typing import Any


def _unseen(file: str, asked: Any) -> bool:
    """Return whether a job lacks a file: it is in a private home, or newer than the image."""
    home = asked["home"]
    if home and os.path.realpath(file).startswith(os.path.realpath(home) + os.sep):
        return not asked["shared"]
    seen = os.stat(file)
    return bool(asked["since"]) and min(seen.st_ctime, seen.st_mtime) > asked["since"]


def _modules(one: metadata.Distribution) -> list[str]:
    """Return the import names of a distribution, from its list of files."""
    found = set()
    for file in one.files or ():
        head, *rest = file.parts
        name = head if rest else head.partition(".")[0] if head.endswith((".py", ".so")) else ""
        if name.isidentifier() and name != "__pycache__":
            found.add(name)
    return sorted(found)


def main() -> None:
    """Read the request and print the distributions as JSON."""
    asked = json.load(sys.stdin)
    found: dict[str, Any] = {}
    for one in metadata.distributions():
        try:
            name, folder = one.metadata["Name"], str(one._path)  # type: ignore[attr-defined]
            key = name.lower().replace("_", "-")
            if key in found:
                continue  # Python imports the first one found
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
            continue  # a broken installation does not count
    json.dump([found[key] for key in sorted(found) if found[key]], sys.stdout)


if __name__ == "__main__":
    main()
