"""Bills of materials and hashes of a release."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a release: a stand-in for the wheel, with bills and hashes beside it."""
    folder = tmp_path_factory.mktemp("dist")
    (folder / "benchpool-0.1.0.whl").write_bytes(b"a wheel")
    script = ROOT / "images" / "bills.py"
    # `make build` validates the same bill against its schema, which takes most of the time.
    command = [sys.executable, str(script), str(folder), sys.executable, "--no-validate"]
    subprocess.run(command, check=True)
    return folder


def bill(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    assert found["bomFormat"] == "CycloneDX"
    return found


def test_bill_lists_python_packages_with_versions(dist: Path) -> None:
    listed = {
        (one["name"].lower(), one["version"])
        for one in bill(dist / "sbom-python.cdx.json")["components"]
    }
    for name in ("jupyterhub", "tornado", "msgspec", "httpx"):
        assert (name, importlib.metadata.version(name)) in listed


def test_bill_lists_proxy_packages_with_hashes(dist: Path) -> None:
    lock = json.loads((ROOT / "images/proxy/package-lock.json").read_text())["packages"]
    wanted = {
        (path.rpartition("node_modules/")[2], one["version"]) for path, one in lock.items() if path
    }
    components = bill(dist / "sbom-proxy.cdx.json")["components"]
    assert {(one["name"], one["version"]) for one in components} == wanted
    assert all(one["hashes"][0]["alg"] == "SHA-512" for one in components)


def test_bill_lists_front_end_packages(dist: Path) -> None:
    wanted = json.loads((ROOT / "extension/package.json").read_text())["dependencies"]
    components = bill(dist / "sbom-front-end.cdx.json")["components"]
    assert set(wanted) <= {one["name"] for one in components}
    assert all(one["hashes"] for one in components)


def test_hashes_are_checked_by_sha256sum(dist: Path) -> None:
    check = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    done = subprocess.run(check, cwd=dist, capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 4), done.stderr
    (dist / "benchpool-0.1.0.whl").write_bytes(b"another wheel")
    assert subprocess.run(check, cwd=dist, capture_output=True, check=False).returncode == 1
