"""GPUs shared by several workers of one project (R1): holders of the parts, and the rest.

Parts are in thousandths of a GPU. Their sum is at most one GPU, and all of them belong to one
project. Once all its parts are leaving, a GPU counts as free for every project.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchpool_scheduler.core.jobs.amounts import WHOLE_GPU
from benchpool_scheduler.core.model import JobId

Part = tuple[int, int]
"""Index of the project, and thousandths of a GPU."""


class SharedGpu:
    """One GPU with parts that are held, or assigned in this pass."""

    __slots__ = ("given", "held", "releasing")

    def __init__(self) -> None:
        self.held: dict[JobId, Part] = {}
        self.releasing: set[JobId] = set()
        self.given: list[Part] = []

    def parts(self, *, releasing: bool) -> list[Part]:
        """Return the parts in use, now or once leaving jobs are gone."""
        if releasing and self.releasing:
            stay = [part for job, part in self.held.items() if job not in self.releasing]
            return stay + self.given
        return [*self.held.values(), *self.given]

    def rest(self, owner: int, *, releasing: bool) -> int:
        """Return the thousandths left for workers of a project."""
        rest = WHOLE_GPU
        for project, part in self.parts(releasing=releasing):
            if project != owner:
                return 0
            rest -= part
        return rest


class SharedGpus:
    """Shared GPUs of a node, by position.

    Attributes:
        in_use: Positions in use in parts now.
        in_use_after: Positions in use in parts once leaving jobs are gone.
    """

    __slots__ = ("_gpus", "in_use", "in_use_after")

    def __init__(self) -> None:
        self._gpus: dict[int, SharedGpu] = {}
        self.in_use = self.in_use_after = 0

    def seat(self, at: int, job: JobId, part: Part) -> None:
        """Record that a job holds a part."""
        self._gpus.setdefault(at, SharedGpu()).held[job] = part
        self._settle(at)

    def unseat(self, at: int, job: JobId) -> None:
        """Record that a job no longer holds its part."""
        if at in self._gpus:
            self._gpus[at].held.pop(job, None)
            self._settle(at)

    def release(self, at: int, job: JobId) -> None:
        """Record that the holder of a part is leaving."""
        if at in self._gpus:
            self._gpus[at].releasing.add(job)
            self._settle(at)

    def hold(self, at: int, job: JobId) -> None:
        """Record that the leaving holder of a part stays."""
        if at in self._gpus:
            self._gpus[at].releasing.discard(job)
            self._settle(at)

    def assign(self, at: int, part: Part) -> None:
        """Assign a part to a worker in this pass."""
        self._gpus.setdefault(at, SharedGpu()).given.append(part)
        self._settle(at)

    def unassign(self, at: int, part: Part) -> None:
        """Remove a part that this pass assigned."""
        self._gpus[at].given.remove(part)
        self._settle(at)

    def rests(self, owner: int, blocked: int, *, releasing: bool) -> Iterator[tuple[int, int]]:
        """Yield position and thousandths left for a project, on GPUs that are not blocked."""
        for at, gpu in self._gpus.items():
            bit = 1 << at
            used = self.in_use_after if releasing else self.in_use
            if (
                used & bit
                and not blocked & bit
                and (rest := gpu.rest(owner, releasing=releasing)) > 0
            ):
                yield at, rest

    def owned(self, blocked: int) -> tuple[Part, ...]:
        """Return the project and rest of every shared GPU, sorted, to compare nodes."""
        found: list[Part] = []
        for at, gpu in self._gpus.items():
            if not blocked & (1 << at) and (parts := gpu.parts(releasing=False)):
                owner = parts[0][0]
                if (rest := gpu.rest(owner, releasing=False)) > 0:
                    found.append((owner, rest))
        return tuple(sorted(found))

    def rest(self, at: int, owner: int, *, releasing: bool) -> int:
        """Return the thousandths left of one GPU for a project."""
        return self._gpus[at].rest(owner, releasing=releasing) if at in self._gpus else WHOLE_GPU

    def releasing(self, at: int) -> list[tuple[JobId, int]]:
        """Return the jobs that are leaving a GPU, each with its thousandths."""
        gpu = self._gpus.get(at)
        return [] if gpu is None else [(job, gpu.held[job][1]) for job in sorted(gpu.releasing)]

    def _settle(self, at: int) -> None:
        gpu, bit = self._gpus[at], 1 << at
        self.in_use &= ~bit
        self.in_use_after &= ~bit
        if not gpu.held and not gpu.given:
            del self._gpus[at]
            return
        self.in_use |= bit
        if gpu.parts(releasing=True):
            self.in_use_after |= bit
