"""An environment with the oldest JupyterHub that pyproject.toml lets in, for tests on it.

All else is what the tests themselves run with: only JupyterHub is installed before it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
_FLOOR = re.compile(r'^\s*"jupyterhub>=([0-9.]+)"', re.MULTILINE)


def version() -> str:
    """Return the oldest version that may be installed."""
    found = _FLOOR.search((ROOT / "pyproject.toml").read_text())
    assert found, "pyproject.toml names no oldest jupyterhub"
    return found[1]


def python(folder: Path) -> Path:
    """Make the environment in a new folder; return its Python."""
    venv.create(folder, with_pip=False, symlinks=True)
    made = folder / "bin" / "python"
    wanted = f"jupyterhub=={version()}"
    pip = [sys.executable, "-m", "pip", "--python", str(made)]
    subprocess.run([*pip, "install", "-q", "--no-deps", wanted], check=True)
    ours = sysconfig.get_path("purelib")
    (own,) = folder.glob("lib/python*/site-packages")
    # What is installed here is found after what lies in the new environment itself.
    (own / "tests.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
    for part in ("share/jupyter", "etc/jupyter"):
        (folder / part).parent.mkdir(exist_ok=True)
        (folder / part).symlink_to(Path(sys.prefix) / part)
    return made
