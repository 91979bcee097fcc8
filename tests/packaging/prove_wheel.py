"""Install the built wheel into an empty environment and check that it is complete.

Usage: ``python tests/packaging/prove_wheel.py DIST``. Writes the bills of materials and the hashes
beside it (``images/bills.py``). Exits 1 with a message if one of these holds:

- The front end, the server extension's switch or the Hub's configuration is missing.
- The wheel contains files that are not part of the product.
- JupyterLab does not list the extension as enabled.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NEEDED = (
    "data/share/jupyter/labextensions/@benchpool/lab/package.json",
    "data/share/jupyter/labextensions/@benchpool/lab/static/style.js",
    "data/share/jupyter/labextensions/@benchpool/lab/install.json",
    "data/etc/jupyter/jupyter_server_config.d/benchpool.json",
    "data/share/benchpool/hub_config/local.py",
)
FOR_TESTS = re.compile(
    r"^\s*(from|import) (benchpool_support|pytest|hypothesis|playwright)\b", re.MULTILINE
)
"""Imports that only test scaffolding contains."""
PRODUCT = ("benchpool/", "benchpool_scheduler/", "benchpool_spawner/", "benchpool-")
"""Prefixes of all files in the wheel. Test support has none of them."""


def missing_parts(wheel: Path) -> list[str]:
    """Return the names of the parts that the wheel lacks."""
    archive = zipfile.ZipFile(wheel)
    names = archive.namelist()
    lacking = [part for part in NEEDED if not any(name.endswith(part) for name in names)]
    if not any("static/remoteEntry" in name for name in names):
        lacking.append("the front end's remote entry")
    lacking += [f"the licence of {each}" for each in sorted(bundled() - licensed(archive))]
    if any(name.startswith("benchpool/labextension/") for name in names):
        lacking.append("tidiness: the front end is in the package as well")
    more = sorted({name for name in names if not any(name.startswith(part) for part in PRODUCT)})
    lacking += [f"tidiness: {name} is no part of the product" for name in more]
    modules = [name for name in names if name.endswith(".py")]
    scaffolding = [name for name in modules if FOR_TESTS.search(archive.read(name).decode())]
    lacking += [f"tidiness: {name} is for tests" for name in scaffolding]
    return lacking


def bundled() -> set[str]:
    """Return the packages that the front end bundles; JupyterLab provides the rest."""
    needed = json.loads((ROOT / "extension" / "package.json").read_text())["dependencies"]
    return {name for name in needed if not name.startswith(("@jupyterlab/", "@lumino/", "react"))}


def licensed(archive: zipfile.ZipFile) -> set[str]:
    """Return the packages with a licence beside the built front end in the wheel."""
    listed = [each for each in archive.namelist() if each.endswith("third-party-licenses.json")]
    return {
        package["name"] for each in listed for package in json.loads(archive.read(each))["packages"]
    }


def installed_listing(wheel: Path, folder: Path) -> str:
    """Install the wheel into a new environment and return JupyterLab's list of extensions."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    constraints = ROOT / "constraints.txt"
    pip = [str(python), "-m", "pip", "install", "-q", "-c", str(constraints), str(wheel)]
    subprocess.run(pip, check=True)
    subprocess.run([str(folder / "bin" / "benchpool"), "--version"], check=True)
    # `jupyter` finds its subcommands on PATH; it must find those of the new environment only.
    environment = {**os.environ, "PATH": f"{folder / 'bin'}{os.pathsep}{os.defpath}"}
    listing = subprocess.run(
        ["jupyter", "labextension", "list"],
        check=True,
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
    )
    return listing.stdout + listing.stderr


def main(dist: Path) -> int:
    """Check the one wheel in ``dist`` and return the exit status."""
    (wheel,) = dist.glob("benchpool-*.whl")
    lacking = missing_parts(wheel)
    if lacking:
        print(f"{wheel.name} lacks: {', '.join(lacking)}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "environment"
        listing = installed_listing(wheel, environment)
        bills = [sys.executable, str(ROOT / "images" / "bills.py")]
        subprocess.run([*bills, str(dist), str(environment / "bin" / "python")], check=True)
    line = next((line for line in listing.splitlines() if "@benchpool/lab" in line), "")
    if "enabled" not in line or "OK" not in line:
        print(f"JupyterLab does not list the extension as enabled:\n{listing}", file=sys.stderr)
        return 1
    print(f"{wheel.name}: whole, and no test scaffolding in it; JupyterLab lists {line.strip()}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
