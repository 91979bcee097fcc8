"""Kill, stop and continue the processes of containers from the machine.

The nodes of this cluster share one machine, so a container's processes are visible on it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from benchpool_cluster import cgroups
from benchpool_cluster.processes import NotReady, began, in_time


def main_process(pod: dict[str, Any], container: str = "") -> int:
    """Return the machine's process ID of the first process of a pod's container.

    The default is the first container.

    Raises:
        NotReady: The container does not run.
    """
    states = pod["status"].get("containerStatuses", [])
    found = [one for one in states if container in ("", one["name"])]
    for one in found[:1]:
        for pid in _members(str(one.get("containerID", "")).rpartition("/")[2]):
            if _number_inside(pid) == 1:
                return pid
    name = pod["metadata"]["name"]
    raise NotReady(f"container {container or 'of'} {name} does not run: {pod['status']}")


def kill(pod: dict[str, Any], container: str = "") -> None:
    """End a container's first process as a crash would; its kubelet restarts the container."""
    pid = main_process(pod, container)
    born = began(pid)
    os.kill(pid, signal.SIGKILL)
    if not in_time(lambda: began(pid) != born, 60):
        raise NotReady(f"process {pid} of {pod['metadata']['name']} does not die")


@contextmanager
def stopped(pod: dict[str, Any], container: str = "") -> Iterator[int]:
    """Stop a container's first process without ending it, and resume it at the end."""
    pid = main_process(pod, container)
    born = began(pid)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield pid
    finally:
        if began(pid) == born:
            os.kill(pid, signal.SIGCONT)


def _members(container: str) -> Iterator[int]:
    """Yield all processes of a container, from the cgroup with its name."""
    if not container:
        return
    for tree in cgroups.trees():
        for file in tree.glob(f"benchpool-*/**/{container}/cgroup.procs"):
            with suppress(OSError):
                yield from (int(line) for line in file.read_text().split())


def _number_inside(pid: int) -> int | None:
    """Return the ID of a process in its own container, or None."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("NSpid:"):
                return int(line.split()[-1])
    return None
