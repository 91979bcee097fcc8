"""The front end's wire types, made from the OpenAPI documents by openapi-typescript.

The generator is one of the front end's development dependencies and runs without a network. The
mapping of documents to files is in ``extension/redocly.yaml``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

EXTENSION = Path(__file__).resolve().parent.parent / "extension"
GENERATOR = EXTENSION / "node_modules" / "openapi-typescript" / "bin" / "cli.js"
CONFIG = EXTENSION / "redocly.yaml"
OPTIONS = ("--root-types", "--root-types-no-schema-prefix")


def are_stale(config: Path = CONFIG) -> bool:
    """Return whether the committed types differ from the documents; errors as in ``run``."""
    return run(config, "--check").returncode != 0


def write(config: Path = CONFIG) -> None:
    """Write the types.

    Raises:
        RuntimeError: The generator failed. Others: as ``run``.
    """
    done = run(config)
    if done.returncode:
        raise RuntimeError(f"openapi-typescript failed: {done.stdout}{done.stderr}")


def run(config: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the generator with a file that maps documents to types.

    Raises:
        RuntimeError: It or Node is not installed.
    """
    # The wheel installs Node beside Python, which need not be on the path.
    node = shutil.which("node") or str(Path(sys.executable).with_name("node"))
    if not GENERATOR.exists() or not Path(node).exists():
        raise RuntimeError("openapi-typescript is missing: run `npm ci` in extension/")
    return subprocess.run(
        [node, GENERATOR, "--redocly", config, *OPTIONS, *arguments],
        cwd=EXTENSION,
        text=True,
        capture_output=True,
        check=False,
    )
