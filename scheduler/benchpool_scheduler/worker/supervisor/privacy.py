"""A private ``/tmp`` for a worker, and a ``/proc`` that hides processes of other accounts.

Both are mounts in a namespace of the worker's processes. Root may create one. Other accounts may
create one where the kernel allows user namespaces. They get no private ``/proc``, because only root
may mount it.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from . import system_calls
from .system_calls import (
    CLONE_NEWNS,
    CLONE_NEWUSER,
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_REC,
    MS_SLAVE,
)

TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108  (these are what is covered)

HIDES_SINCE = (5, 8)
"""First version of Linux in which hiding is limited to one mount of ``/proc``."""


Become = Callable[[], AbstractContextManager[None]]
"""Context in which the process uses a worker's account."""


def enter(folder: str, kept: Sequence[str], become: Become | None) -> None:
    """Give the calling process and its children private temporary folders. Raises OSError.

    Args:
        folder: Folder for their files, closed to other accounts.
        kept: Files and folders below the temporary folders that stay reachable, if the worker's
            account can reach them now.
        become: Account that owns the temporary folders; None for the current one.
    """
    own = _own_user()
    system_calls.unshare(CLONE_NEWNS if own is None else CLONE_NEWNS | CLONE_NEWUSER)
    if own is not None:
        _stay(*own)
    system_calls.mount("none", "/", "", MS_REC | MS_SLAVE)
    covered = [place for place in TEMPORARY if os.path.isdir(place) and not os.path.islink(place)]
    with contextlib.nullcontext() if become is None else become():
        owner = os.geteuid(), os.getegid()
        held = _hold(kept, covered)
    # Everything is opened before anything is covered, because the folder may be below /tmp itself.
    own_places = {place: _own_place(folder, place, owner) for place in covered}
    try:
        for place, descriptor in own_places.items():
            system_calls.mount(f"/proc/self/fd/{descriptor}", place, "", MS_BIND | MS_REC)
        for path, descriptor in held.items():
            _put_back(path, descriptor)
    finally:
        for descriptor in (*held.values(), *own_places.values()):
            os.close(descriptor)
    if own is None and _hides():
        flags = MS_NOSUID | MS_NODEV | MS_NOEXEC
        system_calls.mount("proc", "/proc", "proc", flags, "hidepid=invisible")


def holds() -> frozenset[str]:
    """Return the parts that work here, tested in a child: ``tmp``, ``processes``."""
    child = os.fork()
    if child == 0:
        status = 1
        with contextlib.suppress(BaseException):
            own = _own_user()
            system_calls.unshare(CLONE_NEWNS if own is None else CLONE_NEWNS | CLONE_NEWUSER)
            if own is not None:
                _stay(*own)
            system_calls.mount("none", "/", "", MS_REC | MS_SLAVE)
            system_calls.mount(TEMPORARY[0], TEMPORARY[0], "", MS_BIND | MS_REC)
            status = 2
            if own is None and _hides():
                flags = MS_NOSUID | MS_NODEV | MS_NOEXEC
                system_calls.mount("proc", "/proc", "proc", flags, "hidepid=invisible")
                status = 3
        os._exit(status)
    _, ended = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(ended)
    return frozenset({2: {"tmp"}, 3: {"tmp", "processes"}}.get(code, ()))


def _own_user() -> tuple[int, int] | None:
    """Return the IDs that a user namespace must keep; None for root, which needs none."""
    return None if os.geteuid() == 0 else (os.geteuid(), os.getegid())


def _stay(uid: int, gid: int) -> None:
    """Map the same user and group into the new user namespace."""
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {uid} 1"),
        ("gid_map", f"{gid} {gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def _hides() -> bool:
    words = os.uname().release.split(".")
    with contextlib.suppress(ValueError, IndexError):
        return (int(words[0]), int(words[1])) >= HIDES_SINCE
    return False


def _own_place(folder: str, place: str, owner: tuple[int, int]) -> int:
    below = os.path.join(folder, place.strip("/").replace("/", "-"))
    os.mkdir(below, 0o700)
    os.chown(below, *owner)
    return os.open(below, os.O_PATH | os.O_CLOEXEC)


def _hold(kept: Sequence[str], covered: Sequence[str]) -> dict[str, int]:
    """Open the paths that stay reachable, except those inside a folder that stays reachable."""
    held: dict[str, int] = {}
    for path in sorted({os.path.normpath(one) for one in kept}):
        below = any(path.startswith(f"{place}/") for place in covered)
        if below and not any(path.startswith(f"{outer}/") for outer in held):
            with contextlib.suppress(OSError):
                held[path] = os.open(path, os.O_PATH | os.O_CLOEXEC)
    return held


def _put_back(path: str, descriptor: int) -> None:
    whole = stat.S_ISDIR(os.fstat(descriptor).st_mode)
    _make(path if whole else os.path.dirname(path))
    if not whole:
        os.close(os.open(path, os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    system_calls.mount(f"/proc/self/fd/{descriptor}", path, "", MS_BIND | MS_REC)


def _make(folder: str) -> None:
    """Create a folder with its parents, which others may traverse and not write to.

    Files written beside a kept folder would silently be lost at the worker's end.
    """
    if not os.path.isdir(folder):
        _make(os.path.dirname(folder))
        os.mkdir(folder)
        os.chmod(folder, 0o711)  # noqa: S103  (to pass through, not to list)
