"""Stacks of all workers, grouped by equality; pure functions."""

from __future__ import annotations

from collections.abc import Mapping

from benchpool_scheduler.contract.stacks import ProcessStacks, StackGroup, WorkerStacks
from benchpool_scheduler.phrases import visible


def grouped(found: Mapping[int, WorkerStacks]) -> list[StackGroup]:
    """Return the workers in groups of equal stacks, in the order of their first workers.

    Numbers of processes and their commands may differ.
    """
    groups: dict[object, list[int]] = {}
    for worker in sorted(found):
        groups.setdefault(_same(found[worker]), []).append(worker)
    return [
        StackGroup(
            workers,
            in_words(workers),
            [_shown(process) for process in found[workers[0]].processes],
            visible(found[workers[0]].why),
        )
        for workers in groups.values()
    ]


def in_words(workers: list[int]) -> str:
    """Return a list of workers in words, with ranges.

    >>> in_words([0, 1, 2, 3, 7]), in_words([4])
    ('workers 0-3, 7', 'worker 4')
    """
    ranges: list[list[int]] = []
    for worker in workers:
        if ranges and ranges[-1][-1] == worker - 1:
            ranges[-1][1:] = [worker]
        else:
            ranges.append([worker])
    listed = ", ".join("-".join(map(str, each)) for each in ranges)
    return f"worker{'s' if len(workers) > 1 else ''} {listed}"


def _same(found: WorkerStacks) -> object:
    processes = tuple(
        tuple((thread.name, tuple(thread.frames)) for thread in process.threads)
        for process in found.processes
    )
    return processes, found.why


def _shown(process: ProcessStacks) -> ProcessStacks:
    """Return a process without deceptive characters, since programs choose their names."""
    threads = [
        type(thread)(visible(thread.name), [visible(frame) for frame in thread.frames])
        for thread in process.threads
    ]
    return ProcessStacks(process.pid, visible(process.command), process.by, threads)
