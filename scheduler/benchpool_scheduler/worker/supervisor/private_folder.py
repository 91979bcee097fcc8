"""What a worker is started in; where the files of its own ``/tmp`` lie, and what it keeps."""

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
"""So many ``.pth`` files of an environment are read, and so much of each."""
SEARCH_PATHS = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "JUPYTER_CONFIG_PATH")


def confinement(
    folder: str, config: SupervisorConfig, group: Group | None, account: Account | None
) -> Confinement:
    """Return what a worker is started in, by its folder. Errors: OSError."""
    private = make(folder) if config.private else None
    own = (os.path.join(folder, name) for name in (records.FILES, records.EXCHANGE))
    told = (*config.folders, config.cwd, config.output_dir, *named(config.argv, config.env))
    kept = [*own, *(path for path in told if path)]
    return Confinement(group, account, private, kept, config.privileges)


def make(folder: str) -> str | None:
    """Make the folder of who is to have a ``/tmp`` of its own; None where it cannot.

    It is closed to its account: only through the mount is what lies in it reached.
    Errors: OSError.
    """
    if not privacy.holds():
        return None
    private = os.path.join(folder, NAME)
    os.mkdir(private, 0o700)
    return private


def named(argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """Return the files and folders that a command was told of, by absolute paths.

    Its home, what it and its search paths name; of an interpreter all that is installed with it,
    and the sources that it was told to take modules from.

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
    """Return what the ``.pth`` files of an environment name, as editable installations do."""
    found: list[str] = []
    folder = os.path.join(glob.escape(environment), "lib", "python3*", "site-packages")
    for file in sorted(glob.glob(os.path.join(folder, "*.pth")))[:MOST_PTH]:
        with contextlib.suppress(OSError, UnicodeError), open(file, encoding="utf-8") as lines:
            found += lines.read(PTH_BYTES).splitlines()
    return found


def remove(folder: str) -> None:
    """Remove the own temporary files; no harm where there are none."""
    private = os.path.join(folder, NAME)
    with contextlib.suppress(OSError):
        results.remove_tree(private)
        os.rmdir(private)


def sweep(below: str) -> int:
    """Remove the folders of private files that no process sees; return how many.

    Whoever has one mounted is in it, whether anybody knows of that process or not. To be called
    while nobody makes new ones.
    """
    try:
        names = [entry.name for entry in os.scandir(below) if entry.is_dir(follow_symlinks=False)]
        seen = _mounted() if names else ""
    except OSError:
        return 0  # it is not there, or who uses what cannot be told now
    unused = [name for name in names if f"/{name}/{NAME}" not in seen]
    for name in unused:
        folder = os.path.join(below, name)
        remove(folder)
        with contextlib.suppress(OSError):
            os.rmdir(folder)
    return len(unused)


def _mounted() -> str:
    """Return what all processes have mounted, one text for each name space. Errors: OSError."""
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
