"""Environments with other versions of JupyterHub, for tests on them.

    python -m benchpool_support.hub_environments

makes all of them in the virtual environment of the tests; the Makefile calls it. Each has a
JupyterHub of its own, and finds everything else where the tests find it.
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
"""The last release of the line before the present one."""
_FLOOR = re.compile(r'^\s*"jupyterhub>=([0-9.]+)"', re.MULTILINE)


def oldest() -> str:
    """Return the oldest version that pyproject.toml lets in."""
    found = _FLOOR.search((ROOT / "pyproject.toml").read_text())
    assert found, "pyproject.toml names no oldest jupyterhub"
    return found[1]


def python(version: str) -> Path:
    """Return the Python that has this JupyterHub.

    Raises:
        FileNotFoundError: Its environment was not made.
    """
    made = FOLDER / version / "bin" / "python"
    if not made.exists():
        raise FileNotFoundError(
            f"there is no environment with JupyterHub {version} in {FOLDER}; "
            "run `make .stamps/hubs`, or the tests by `make test`"
        )
    return made


def make(version: str) -> None:
    """Make the environment of a version anew."""
    folder = FOLDER / version
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=False, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
    subprocess.run([*pip, "install", "-q", "--no-deps", f"jupyterhub=={version}"], check=True)
    ours = sysconfig.get_path("purelib")
    (own,) = folder.glob("lib/python*/site-packages")
    # What is installed here is found after what lies in the new environment itself.
    (own / "tests.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
    for part in ("share/jupyter", "etc/jupyter"):
        (folder / part).parent.mkdir(exist_ok=True)
        (folder / part).symlink_to(Path(sys.prefix) / part)


if __name__ == "__main__":
    for each in (oldest(), EARLIER_LINE):
        make(each)
