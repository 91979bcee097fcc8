"""The processes of containers, as the machine sees them: to be killed, stopped and continued.

The nodes of this cluster share one machine, so that a container's processes are among its own.
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
    """The id on this machine of the first process of a pod's container, by default the first one.

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
    """End a container's first process as a crash would; its kubelet starts the container again."""
    pid = main_process(pod, container)
    born = began(pid)
    os.kill(pid, signal.SIGKILL)
    if not in_time(lambda: began(pid) != born, 60):
        raise NotReady(f"process {pid} of {pod['metadata']['name']} does not die")


@contextmanager
def stopped(pod: dict[str, Any], container: str = "") -> Iterator[int]:
    """Stop a container's first process without ending it, and let it go on at the end."""
    pid = main_process(pod, container)
    born = began(pid)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield pid
    finally:
        if began(pid) == born:
            os.kill(pid, signal.SIGCONT)


def _members(container: str) -> Iterator[int]:
    """All processes of a container, by the cgroup that is named after it."""
    if not container:
        return
    for tree in cgroups.trees():
        for file in tree.glob(f"benchpool-*/**/{container}/cgroup.procs"):
            with suppress(OSError):
                yield from (int(line) for line in file.read_text().split())


def _number_inside(pid: int) -> int | None:
    """The id of a process in its own container."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("NSpid:"):
                return int(line.split()[-1])
    return None
