"""Start a Jupyter program without its slowest import, which none of them uses.

    python -m benchpool_scheduler.workstation.jupyter jupyterhub -f FILE

JupyterHub and Jupyter Server load jsonschema, which loads ``rfc3987_syntax`` where it is installed,
for the formats ``iri`` and ``iri-reference``. That takes a second, half of the whole start, and
none of their schemas has these formats.
"""

from __future__ import annotations

import importlib
import runpy
import sys

_LEFT_OUT = "rfc3987_syntax"


def command(module: str, *words: str) -> list[str]:
    """Return the command line that runs ``python -m module words`` in this way.

    >>> command("jupyterhub", "-f", "config.py")[1:]
    ['-m', 'benchpool_scheduler.workstation.jupyter', 'jupyterhub', '-f', 'config.py']
    """
    return [sys.executable, "-m", "benchpool_scheduler.workstation.jupyter", module, *words]


def load_jsonschema() -> None:
    """Load jsonschema without these formats; a later import of ``rfc3987_syntax`` still works."""
    if _LEFT_OUT in sys.modules:
        return
    sys.modules[_LEFT_OUT] = None  # type: ignore[assignment]
    try:
        importlib.import_module("jsonschema")
    finally:
        del sys.modules[_LEFT_OUT]


if __name__ == "__main__":
    load_jsonschema()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
