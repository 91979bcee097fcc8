"""Build all images and print the duration, size and hash of each.

Usage: ``python images/build.py [--engine docker|buildah] [--tag TAG] [--base IMAGE] [PART...]``

With Docker the images use the public base of each Dockerfile, unless ``--base`` names another; they
have the names that the chart of this version requests. With buildah, which needs no image registry,
they use a Debian made from its packages, and become archives. The last output lines explain how to
bring these to a registry or a node.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("hub", "proxy", "scheduler", "notebook", "job")
MIB = 1024 * 1024


def main() -> int:
    """Build the images and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--engine", choices=("docker", "buildah"), default=engine())
    parser.add_argument("--tag", default=version(), help="tag of the images; %(default)s")
    parser.add_argument("--base", help="with Docker: base of all images instead of the public one")
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        help=f"images to build, of {', '.join(PARTS)}; default: all",
    )
    chosen = parser.parse_args()
    unknown = sorted(set(chosen.parts) - set(PARTS))
    if unknown:
        parser.error(f"unknown image {', '.join(unknown)}; images: {', '.join(PARTS)}")
    parts = chosen.parts or list(PARTS)
    if chosen.engine == "docker":
        with_docker(parts, chosen.tag, chosen.base)
    else:
        with_buildah(parts, chosen.tag)
    return 0


def version() -> str:
    """Return the version of the images that the chart requests."""
    about = (ROOT / "helm" / "benchpool" / "Chart.yaml").read_text()
    (found,) = re.findall(r"^appVersion: \"?([^\"\s]+)\"?$", about, re.MULTILINE)
    return str(found)


def engine() -> str:
    """Return ``docker`` if its daemon answers, else ``buildah``."""
    if shutil.which("docker") is None:
        return "buildah"
    asked = subprocess.run(["docker", "version"], capture_output=True)
    return "docker" if asked.returncode == 0 else "buildah"


def with_docker(parts: list[str], tag: str, base: str | None) -> None:
    """Build with Docker's daemon, as ``benchpool/PART:TAG``."""
    given = ["--build-arg", f"BASE_IMAGE={base}"] if base else []
    for part in parts:
        name, began = f"benchpool/{part}:{tag}", time.monotonic()
        file = f"images/{part}/Dockerfile"
        subprocess.run(
            ["docker", "build", "--quiet", *given, "--tag", name, "--file", file, "."],
            cwd=ROOT,
            check=True,
        )
        asked = ["docker", "image", "inspect", "--format", "{{.Size}} {{.Id}}", name]
        output = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
        size, digest = output.split()
        report(name, time.monotonic() - began, int(size), digest)


def with_buildah(parts: list[str], tag: str) -> None:
    """Build with buildah, as archives in the cache of the tests."""
    sys.path.insert(0, str(ROOT / "tests" / "cluster"))
    from benchpool_cluster import product_images

    archives: dict[str, Path] = {}
    for part in parts:
        built = product_images.build(part)
        with built.archive.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        where = f"sha256:{digest} {built.archive}"
        report(built.name, built.seconds, built.archive.stat().st_size, where)
        archives[part] = built.archive
    print(how_to_use(archives, tag))


def how_to_use(archives: Mapping[str, Path], tag: str) -> str:
    """Return instructions for bringing the archives to the place where the chart finds them."""
    pushes = [
        f"  skopeo copy oci-archive:{archive} docker://REGISTRY/benchpool/{part}:{tag}"
        for part, archive in archives.items()
    ]
    imports = [
        f"  ctr -n k8s.io images import --index-name docker.io/benchpool/{part}:{tag} {archive}"
        for part, archive in archives.items()
    ]
    return "\n".join(
        [
            "To a registry, with images.prefix: REGISTRY/benchpool/ in the chart's values:",
            *pushes,
            "Or onto each node that runs containerd, without a registry:",
            *imports,
        ]
    )


def report(name: str, seconds: float, size: int, where: str) -> None:
    """Print one image's figures."""
    print(f"{name:40} {seconds:6.0f} s {size / MIB:7.0f} MiB  {where}".rstrip(), flush=True)


if __name__ == "__main__":
    sys.exit(main())
