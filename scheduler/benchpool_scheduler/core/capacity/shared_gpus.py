"""GPUs that several workers of one project share (R1): who has which part, and what is left.

Parts are in thousandths of a GPU. Their sum is at most one GPU, and all of them belong to one
project; a GPU whose parts are all leaving is soon free for anybody.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchpool_scheduler.core.jobs.amounts import WHOLE_GPU
from benchpool_scheduler.core.model import JobId

Part = tuple[int, int]
"""The project's index and the thousandths."""


class SharedGpu:
    """One GPU of which parts are held, or given out in this pass."""

    __slots__ = ("given", "going", "held")

    def __init__(self) -> None:
        self.held: dict[JobId, Part] = {}
        self.going: set[JobId] = set()
        self.given: list[Part] = []

    def parts(self, *, soon: bool) -> list[Part]:
        """Return the parts in use, now or once the leaving are gone."""
        if soon and self.going:
            stay = [part for job, part in self.held.items() if job not in self.going]
            return stay + self.given
        return [*self.held.values(), *self.given]

    def rest(self, owner: int, *, soon: bool) -> int:
        """Return the thousandths left for workers of a project."""
        rest = WHOLE_GPU
        for project, part in self.parts(soon=soon):
            if project != owner:
                return 0
            rest -= part
        return rest


class SharedGpus:
    """The shared GPUs of a node by position.

    Attributes:
        now: The positions in use in parts now. ``soon``: those still so when the leaving are gone.
    """

    __slots__ = ("_gpus", "now", "soon")

    def __init__(self) -> None:
        self._gpus: dict[int, SharedGpu] = {}
        self.now = self.soon = 0

    def seat(self, at: int, job: JobId, part: Part) -> None:
        """A job holds a part."""
        self._gpus.setdefault(at, SharedGpu()).held[job] = part
        self._settle(at)

    def unseat(self, at: int, job: JobId) -> None:
        """Take back ``seat``."""
        if at in self._gpus:
            self._gpus[at].held.pop(job, None)
            self._settle(at)

    def let_go(self, at: int, job: JobId) -> None:
        """The holder of a part is leaving."""
        if at in self._gpus:
            self._gpus[at].going.add(job)
            self._settle(at)

    def hold_again(self, at: int, job: JobId) -> None:
        """Take back ``let_go``."""
        if at in self._gpus:
            self._gpus[at].going.discard(job)
            self._settle(at)

    def give(self, at: int, part: Part) -> None:
        """Give a part to a worker in this pass."""
        self._gpus.setdefault(at, SharedGpu()).given.append(part)
        self._settle(at)

    def give_back(self, at: int, part: Part) -> None:
        """Take back ``give``."""
        self._gpus[at].given.remove(part)
        self._settle(at)

    def rests(self, owner: int, blocked: int, *, soon: bool) -> Iterator[tuple[int, int]]:
        """Yield position and thousandths left for a project, on GPUs that are not blocked."""
        for at, gpu in self._gpus.items():
            bit = 1 << at
            in_use = self.soon if soon else self.now
            if in_use & bit and not blocked & bit and (rest := gpu.rest(owner, soon=soon)) > 0:
                yield at, rest

    def owned(self, blocked: int) -> tuple[Part, ...]:
        """Return by project what is left now of every GPU, sorted; for comparing nodes."""
        found: list[Part] = []
        for at, gpu in self._gpus.items():
            if not blocked & (1 << at) and (parts := gpu.parts(soon=False)):
                owner = parts[0][0]
                if (rest := gpu.rest(owner, soon=False)) > 0:
                    found.append((owner, rest))
        return tuple(sorted(found))

    def rest(self, at: int, owner: int, *, soon: bool) -> int:
        """Return what is left of one GPU for a project."""
        return self._gpus[at].rest(owner, soon=soon) if at in self._gpus else WHOLE_GPU

    def leaving(self, at: int) -> list[JobId]:
        """Return the jobs that are leaving a GPU."""
        return sorted(self._gpus[at].going) if at in self._gpus else []

    def _settle(self, at: int) -> None:
        gpu, bit = self._gpus[at], 1 << at
        self.now &= ~bit
        self.soon &= ~bit
        if not gpu.held and not gpu.given:
            del self._gpus[at]
            return
        self.now |= bit
        if gpu.parts(soon=True):
            self.soon |= bit
