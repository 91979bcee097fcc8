"""Confinement of a worker: the files of its private ``/tmp``, and the paths that it keeps."""

from __future__ import annotations

import contextlib
import errno
import glob
import os
from collections.abc import Mapping, Sequence

from .. import records
from . import privacy, results
from .cgroups import Group
from .child import Account, Confinement
from .config import SupervisorConfig

NAME = "private"
MOST_PTH, PTH_BYTES = 100, 65_536
"""Most ``.pth`` files of an environment that are read, and most bytes of each."""
SEARCH_PATHS = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "JUPYTER_CONFIG_PATH")


def confinement(
    folder: str, config: SupervisorConfig, group: Group | None, account: Account | None
) -> Confinement:
    """Return the confinement of a worker. Raises OSError."""
    private = make(folder) if config.private else None
    own = (os.path.join(folder, name) for name in (records.FILES, records.EXCHANGE))
    paths = (*config.folders, config.cwd, config.output_dir, *named(config.argv, config.env))
    kept = [*own, *(path for path in paths if path)]
    return Confinement(group, account, private, kept, config.privileges)


def make(folder: str) -> str | None:
    """Create the folder for a private ``/tmp``; None if the machine does not support it.

    The folder is closed to the worker's account, which reaches its files only by the mount. Raises
    OSError.
    """
    if not privacy.holds():
        return None
    private = os.path.join(folder, NAME)
    os.mkdir(private, 0o700)
    return private


def named(argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """Return the absolute paths that a command uses.

    They are its home and the paths in its arguments and search paths. For an interpreter they
    include its installation, and the source folders from which it imports modules.

    >>> named(["/opt/env/bin/python", "-m", "train"], {"HOME": "/home/joe", "PATH": "/bin:lib"})
    ['/home/joe', '/opt/env/bin/python', '/bin', '/opt/env']
    """
    paths = [env.get("HOME", ""), *argv]
    for name in SEARCH_PATHS:
        paths += env.get(name, "").split(":")
    environment = os.path.dirname(os.path.dirname(argv[0]))
    paths += [environment, *_sources(environment)]
    return [path for path in paths if os.path.isabs(path)]


def _sources(environment: str) -> list[str]:
    """Return the lines of an environment's ``.pth`` files, as used by editable installations."""
    found: list[str] = []
    folder = os.path.join(glob.escape(environment), "lib", "python3*", "site-packages")
    for file in sorted(glob.glob(os.path.join(folder, "*.pth")))[:MOST_PTH]:
        with contextlib.suppress(OSError, UnicodeError), open(file, encoding="utf-8") as lines:
            found += lines.read(PTH_BYTES).splitlines()
    return found


def remove(folder: str) -> None:
    """Remove the private temporary files, if there are any."""
    private = os.path.join(folder, NAME)
    with contextlib.suppress(OSError):
        results.remove_tree(private)
        os.rmdir(private)


def sweep(below: str) -> int:
    """Remove the folders of private files that no process has mounted; return their number.

    The mounts of all processes are checked, including unknown ones. Do not call it while folders
    are created.
    """
    try:
        names = [entry.name for entry in os.scandir(below) if entry.is_dir(follow_symlinks=False)]
        seen = _mounted() if names else ""
    except OSError:
        return 0  # it does not exist, or the mounts cannot be read now
    unused = [name for name in names if f"/{name}/{NAME}" not in seen]
    for name in unused:
        folder = os.path.join(below, name)
        remove(folder)
        with contextlib.suppress(OSError):
            os.rmdir(folder)
    return len(unused)


def _mounted() -> str:
    """Return the mounts of all processes, one text for each namespace. Raises OSError."""
    texts: dict[str, str] = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            space = os.readlink(f"/proc/{pid}/ns/mnt")
        except PermissionError:
            space = pid  # of another account
        except FileNotFoundError:
            continue  # it has ended
        if space in texts:
            continue
        try:
            with open(f"/proc/{pid}/mountinfo", encoding="utf-8", errors="replace") as file:
                texts[space] = file.read()
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ESRCH, errno.EINVAL):
                raise
    return "".join(texts.values())
