"""Write the bills of materials of a release, and the hashes of its files, beside the wheel.

Usage: ``python images/bills.py DIST PYTHON [--no-validate]``: the folder of the wheel, and the
Python of an environment into which it was installed. The bills are CycloneDX, a format of
vulnerability scanners: of the Python packages, of the front end's, of the proxy's. ``sha256sum -c
SHA256SUMS`` checks all of them. The first bill is checked against its schema, which takes most of
the time, unless ``--no-validate`` is given.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SUMS = "SHA256SUMS"
NPM = ("npm", "sbom", "--sbom-format", "cyclonedx", "--omit", "dev", "--package-lock-only")
FOLDERS = {"front-end": ROOT / "extension", "proxy": ROOT / "images" / "proxy"}
"""Folders with an npm lock file, which has the version and hash of each package."""


def python_bill(python: Path, to: Path, *options: str) -> None:
    """Write the packages of an environment; options are those of ``cyclonedx-py``."""
    command = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible"]
    about = ["--pyproject", str(ROOT / "pyproject.toml"), "--output-file", str(to), str(python)]
    subprocess.run([*command, *options, *about], check=True)


def npm_bill(folder: Path, to: Path) -> None:
    """Write the packages of an npm lock file."""
    done = subprocess.run(NPM, cwd=folder, check=True, stdout=subprocess.PIPE)
    to.write_bytes(done.stdout)


def sums(folder: Path) -> str:
    """Return a line for each file in the format of ``sha256sum``."""
    files = sorted(one for one in folder.iterdir() if one.is_file() and one.name != SUMS)
    return "".join(f"{hashlib.sha256(one.read_bytes()).hexdigest()}  {one.name}\n" for one in files)


def main(dist: Path, python: Path, *options: str) -> int:
    """Write bills and hashes; return the exit status."""
    python_bill(python, dist / "sbom-python.cdx.json", *options)
    for name, folder in FOLDERS.items():
        npm_bill(folder, dist / f"sbom-{name}.cdx.json")
    (dist / SUMS).write_text(sums(dist))
    print(f"{dist}: bills of materials of {len(FOLDERS) + 1} packages, and {SUMS}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:]))
