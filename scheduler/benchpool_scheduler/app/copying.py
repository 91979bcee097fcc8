"""``python -m benchpool_scheduler.app.copying``: entry point of the chart's CronJob pods.

    copy hub|pool       make a copy of the volume and delete the oldest beyond --kept
    restore hub|pool    restore the newest copy, or the one that BENCHPOOL_COPY names
    list hub|pool       list the names of the copies

The exit status is 0, or 1 with a message in the log of the pod.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from benchpool_scheduler.app.settings import variable
from benchpool_scheduler.store import volume_copies
from benchpool_scheduler.store.volume_copies import CannotCopy, VolumeCopies

_COPY: dict[str, Callable[[Path, VolumeCopies], list[str]]] = {
    "hub": volume_copies.copy_hub,
    "pool": volume_copies.copy_pool,
}
_RESTORE: dict[str, Callable[[Path, Path], list[str]]] = {
    "hub": volume_copies.restore_hub,
    "pool": volume_copies.restore_pool,
}


def main(words: list[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("act", choices=("copy", "restore", "list"))
    parser.add_argument("volume", choices=tuple(_COPY))
    parser.add_argument("--at", type=Path, required=True, help="mount path of the volume")
    parser.add_argument(
        "--copies", type=Path, required=True, help="mount path of the volume of copies"
    )
    parser.add_argument("--kept", type=int, default=7, help="number of copies to keep")
    given = parser.parse_args(words)
    copies = VolumeCopies(given.copies / given.volume, given.kept)
    try:
        for line in _done(given.act, given.volume, given.at, copies):
            print(line, flush=True)
    except CannotCopy as failed:
        print(failed, file=sys.stderr, flush=True)
        return 1
    return 0


def _done(act: str, volume: str, at: Path, copies: VolumeCopies) -> list[str]:
    if act == "copy":
        return _COPY[volume](at, copies)
    if act == "restore":
        return _RESTORE[volume](at, copies.named(variable("BENCHPOOL_COPY")))
    return sorted(it.name for it in copies.folder.glob(f"*-{volume_copies.KIND}"))


if __name__ == "__main__":
    sys.exit(main())
