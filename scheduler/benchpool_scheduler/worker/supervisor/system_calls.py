"""System calls that Python lacks: prctl, unshare, mount, bpf. They raise OSError.

The C library is loaded with this module rather than at the first call, because a worker's account
may not have permission to read its files.
"""

from __future__ import annotations

import ctypes
import os
import platform

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
"""Constants of ``linux/prctl.h``."""

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
"""Constants of ``linux/sched.h``."""

MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND = 1 << 1, 1 << 2, 1 << 3, 1 << 12
MS_REC, MS_SLAVE = 1 << 14, 1 << 19
"""Constants of ``linux/mount.h``."""

BPF_NUMBERS = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361, "s390x": 351}
"""Number of the system call ``bpf`` by machine; the C library has no function for it."""

_LIBC = ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def prctl(option: int, value: int) -> None:
    """Set an attribute of the calling process."""
    _checked(_LIBC.prctl(option, *(ctypes.c_ulong(one) for one in (value, 0, 0, 0))))


def unshare(flags: int) -> None:
    """Replace shared namespaces of the process by new ones."""
    _checked(_LIBC.unshare(flags))


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    """Mount a file system, or change a mount."""
    words = (os.fsencode(word) for word in (source, target, kind))
    _checked(_LIBC.mount(*words, ctypes.c_ulong(flags), os.fsencode(data) or None))


def bpf(command: int, attributes: bytes) -> int:
    """Call ``bpf``; ``attributes`` is its argument union, padded with zeros."""
    number = BPF_NUMBERS.get(platform.machine())
    if number is None:
        raise OSError(38, f"bpf is not known for {platform.machine()}")
    room = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
    return _checked(int(_LIBC.syscall(ctypes.c_long(number), command, room, 128)))
