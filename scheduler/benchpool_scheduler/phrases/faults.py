"""Remedies for faults of the machine, for all screens."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from types import MappingProxyType

REMEDIES: Mapping[int | None, str] = MappingProxyType(
    {
        errno.EMFILE: "Raise the limit on open files of the scheduler's process "
        "(`prlimit --nofile=65536 --pid {pid}`, or LimitNOFILE= of its unit)",
        errno.ENFILE: "End processes that hold many open files, or raise `sysctl fs.file-max`",
        errno.ENOSPC: "Free space on the disk of the state folder ({state}), in bytes and in "
        "inodes (`df -h`, `df -i`)",
        errno.EDQUOT: "Free space below the state folder ({state}), or raise the disk quota of its "
        "account",
        errno.EAGAIN: "Let the account have more processes (`ulimit -u`, pids.max of its cgroup), "
        "or end some",
        errno.ENOMEM: "Free memory on the machine",
        errno.EIO: "Check the disk of the state folder ({state}) and `dmesg`",
        None: "Check `benchpool doctor` and the log of the scheduler",
    }
)
"""Remedy for each fault, by its number; None stands for all other faults."""
