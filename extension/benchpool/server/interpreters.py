"""Python interpreter of a kernel, from its kernel spec."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from benchpool_scheduler.client.notebooks.kernels import runs_ipykernel
from benchpool_scheduler.errors import InvalidInput

_OURS = {"python", f"python{sys.version_info.major}"} | {
    f"python{sys.version_info.major}.{sys.version_info.minor}"
}
"""Words that the Jupyter server replaces by its own Python when it starts a kernel."""


def chosen(specs: Any, saved: str | None, usual: str) -> tuple[str, str]:
    """Return the kernel that JupyterLab would choose for a closed notebook, and a message.

    The message is empty unless a kernel other than the saved one is used.

    Args:
        saved: Kernel named in the file.
        usual: Kernel of a notebook that names none.
    """
    if saved is None or saved in specs.find_kernel_specs():
        return saved or usual, ""
    return usual, (
        f"The notebook's kernel {saved} is not on this server, so the job uses the kernel {usual}: "
        "open the notebook to choose another"
    )


def of_kernel(specs: Any, name: str) -> str:
    """Return the absolute path of a kernel's interpreter.

    Raises:
        InvalidInput: There is no such kernel, or its Python cannot be found.
    """
    try:
        spec = specs.get_kernel_spec(name)
    except KeyError as unknown:
        raise InvalidInput(
            f"This server has no kernel {name}. Choose a Python kernel for the notebook.",
            field="kernel_name",
        ) from unknown
    argv = list(spec.argv)
    if str(spec.language).lower() != "python":
        raise InvalidInput(
            f"The kernel {spec.display_name} runs {spec.language}. Jobs run Python notebooks, or "
            "commands from the terminal.",
            field="kernel_name",
        )
    if not runs_ipykernel(argv):
        raise InvalidInput(
            f"The kernel {spec.display_name} starts with a custom command, so its Python is not "
            "known. Choose a kernel that was installed with ipykernel.",
            field="kernel_name",
        )
    return _absolute(argv[0], spec.display_name)


def _absolute(word: str, display_name: str) -> str:
    found = sys.executable if word in _OURS else shutil.which(word)
    if found is None or not Path(found).is_absolute():
        raise InvalidInput(
            f"The Python of the kernel {display_name}, {word}, is not on this machine. Choose "
            "another kernel.",
            field="kernel_name",
        )
    return found
