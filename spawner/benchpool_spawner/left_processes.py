"""What a notebook server has left running: how it is found, and that it is ended.

Three nets, as for jobs: the server's cgroup, where one could be made; the mark of its start in the
environment of all that it has started; and what was seen below it, for what has cleared its
environment. Without a cgroup the server inherits what loses its parent: only who is not yet seen
when the server is killed, and has cleared its environment, goes through.
"""

from __future__ import annotations

import asyncio
import os

from benchpool_scheduler.worker import process_identity
from benchpool_scheduler.worker.supervisor import containment, process_notes
from benchpool_scheduler.worker.supervisor.cgroups import Group
from benchpool_scheduler.worker.supervisor.containment import Processes

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 5.0


def look(pid: int, noted: Processes) -> Processes:
    """Return what lives below a server, or did at an earlier look and lives still.

    What we may not end is left out: whoever became root by ``sudo`` is nothing that would end.
    """
    before = {one for one in noted if process_identity.start_ticks(one[0]) == one[1]}
    found = set(before)
    for root in (pid, *(one for one, _ in before)):
        found.update(process_notes.tree(root))
    return tuple(sorted(filter(_is_ours, found)))[: process_notes.MOST]


def _is_ours(process: tuple[int, int]) -> bool:
    try:
        os.kill(process[0], 0)
    except OSError:
        return False
    return True


async def end(tag: str, group: Group | None, noted: Processes) -> None:
    """Kill what carries the tag, was noted or is in the cgroup; returns when none of it is left.

    What the kernel cannot end is waited for, however long that takes.
    """
    pause, clean = FIRST_PAUSE_S, 0
    while True:
        try:
            gone = await asyncio.to_thread(containment.sweep, tag, group, noted)
        except OSError as error:
            if error.errno not in containment.BLIND:
                raise
            gone = False
        clean = clean + 1 if gone else 0
        if clean == 2:  # of what forks fast one look may see neither parent nor child
            return
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_S)
