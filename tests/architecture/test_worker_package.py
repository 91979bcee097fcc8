"""The room ``worker`` runs on a bare interpreter, without site packages and as a top-level
package.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchpool_scheduler import worker

FOLDER = Path(worker.__file__).parent
MODULES = [
    ".".join(path.relative_to(FOLDER.parent).with_suffix("").parts)
    for path in sorted(FOLDER.rglob("*.py"))
]
IMPORT = """
import importlib, sys
sys.path.append(sys.argv[1])
for name in sys.argv[2:]:
    importlib.import_module(name)
for name, module in sorted(sys.modules.items()):
    file = getattr(module, "__file__", None) or ""
    if file and not file.startswith((sys.argv[1] + "/worker/", sys.base_prefix)):
        print(name, file)
"""


def imported(*modules: str) -> str:
    """Return the modules outside the standard library that importing these modules loads."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", IMPORT, str(FOLDER.parent), *modules],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_worker_room_loads_only_itself_and_stdlib() -> None:
    assert "worker.supervisor.run" in MODULES
    assert imported(*MODULES) == ""


def test_import_of_other_room_is_detected() -> None:
    assert imported("errors").startswith("errors ")
