"""Facts about the Python of a kernel, as a script that only that Python runs.

Standard library only, for every Python from 3.9. No installed package is imported.
"""

from __future__ import annotations

import json
import platform
import sys
from importlib import metadata
from urllib.parse import urlsplit, urlunsplit

MOST = 5000


def _source(text: str | None) -> str | None:
    """Return the origin of a distribution (PEP 610), without a user or password."""
    if not text:
        return None
    direct_url = json.loads(text)
    parts = urlsplit(str(direct_url["url"]))
    host = parts.netloc.rpartition("@")[2]
    url = urlunsplit((parts.scheme, host, parts.path, "", ""))
    commit = direct_url.get("vcs_info", {}).get("commit_id")
    sums = direct_url.get("archive_info", {}).get("hashes", {}).get("sha256")
    editable = " (editable)" if direct_url.get("dir_info", {}).get("editable") else ""
    return f"{url}@{commit or sums}" if commit or sums else f"{url}{editable}"


def _packages() -> list[list[str | None]]:
    found: dict[str, list[str | None]] = {}
    for one in metadata.distributions():
        try:
            name, version = one.metadata["Name"], one.version
            source = _source(one.read_text("direct_url.json"))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue  # a broken installation does not count
        # Python imports the first one found.
        if name and name.lower() not in found and len(found) < MOST:
            found[name.lower()] = [str(name), str(version), source]
    return [found[key] for key in sorted(found)]


def _torch_cuda() -> str | None:
    """Return the CUDA version that PyTorch was built for, without importing it."""
    for file in metadata.files("torch") or []:
        if str(file) == "torch/version.py":
            for line in file.read_text("utf-8").splitlines():
                if line.startswith("cuda") and "'" in line:
                    return line.split("'")[1]
    return None


def main() -> None:
    """Print the facts as JSON."""
    try:
        cuda = _torch_cuda()
    except (OSError, ValueError, metadata.PackageNotFoundError):
        cuda = None
    facts = {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": platform.platform(),
        "packages": _packages(),
        "cuda": cuda,
    }
    json.dump(facts, sys.stdout)


if __name__ == "__main__":
    main()
