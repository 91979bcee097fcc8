"""``python -m benchpool_cluster``: the cluster of this machine from the command line."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from benchpool_cluster import build, cluster, debian, images, product_images, sharing
from benchpool_cluster.processes import NotReady

KNOWN = (
    build.CannotBuild,
    cluster.CannotRun,
    debian.CannotInstall,
    images.CannotMake,
    NotReady,
)


def main() -> int:
    """Run the command given on the command line."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    parser = argparse.ArgumentParser(prog="benchpool_cluster", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("up", help="build what is missing and start the cluster")
    verbs.add_parser("down", help="stop it and leave nothing")
    build_verb = verbs.add_parser(
        "build", help="build programs and print their paths; by default all, and the base images"
    )
    build_verb.add_argument("names", nargs="*", choices=[*build.PROGRAMS, []])
    verbs.add_parser("images", help="build benchpool's own images from the wheel in dist/")
    load_verb = verbs.add_parser("load-image", help="give an OCI archive to both nodes")
    load_verb.add_argument("archive", type=Path)
    load_verb.add_argument("name")
    options = parser.parse_args()
    try:
        _do(options)
    except KNOWN as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


def _do(options: argparse.Namespace) -> None:
    if options.verb == "up":
        running = sharing.start_by_hand()
        print(f"KUBECONFIG={running.access.kubeconfig}")
        print(f"kubectl: {build.find('kubectl')}")
    elif options.verb == "down":
        sharing.stop_by_hand()
    elif options.verb == "build":
        for name in options.names or build.PROGRAMS:
            print(build.find(name))
        if not options.names:
            print(images.pause(), images.base(), sep="\n")
    elif options.verb == "images":
        for part in product_images.PARTS:
            print(product_images.build(part).archive)
    else:
        running = cluster.of_this_machine()
        running.load_image(options.archive, options.name)


if __name__ == "__main__":
    sys.exit(main())
