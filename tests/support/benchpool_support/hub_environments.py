"""Environments with other versions of JupyterHub, for tests on them.

    python -m benchpool_support.hub_environments

This creates all of them in the virtual environment of the tests; the Makefile calls it. Each has
its own JupyterHub and takes all other packages from the environment of the tests.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FOLDER = Path(sys.prefix) / "hubs"
EARLIER_LINE = "5.5.4"
"""Last release of the major version before the current one."""
_FLOOR = re.compile(r'^\s*"jupyterhub>=([0-9.]+)"', re.MULTILINE)


def oldest() -> str:
    """Return the oldest version that pyproject.toml allows."""
    found = _FLOOR.search((ROOT / "pyproject.toml").read_text())
    assert found, "pyproject.toml names no oldest jupyterhub"
    return found[1]


def python(version: str) -> Path:
    """Return the Python that has this version of JupyterHub.

    Raises:
        FileNotFoundError: Its environment has not been created.
    """
    made = FOLDER / version / "bin" / "python"
    if not made.exists():
        raise FileNotFoundError(
            f"there is no environment with JupyterHub {version} in {FOLDER}; "
            "run `make .stamps/hubs`, or the tests by `make test`"
        )
    return made


def make(version: str) -> None:
    """Create the environment of a version, and replace an earlier one."""
    folder = FOLDER / version
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=False, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
    subprocess.run([*pip, "install", "-q", "--no-deps", f"jupyterhub=={version}"], check=True)
    ours = sysconfig.get_path("purelib")
    (own,) = folder.glob("lib/python*/site-packages")
    # The packages of the new environment come first, then the packages that are installed here.
    (own / "tests.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
    for part in ("share/jupyter", "etc/jupyter"):
        (folder / part).parent.mkdir(exist_ok=True)
        (folder / part).symlink_to(Path(sys.prefix) / part)


if __name__ == "__main__":
    for each in (oldest(), EARLIER_LINE):
        make(each)
