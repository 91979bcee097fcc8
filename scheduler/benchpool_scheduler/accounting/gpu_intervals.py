"""The recorded history of GPUs, and what else their division needs. Times are epoch seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from benchpool_scheduler.accounting.classes import GpuUseKind


@dataclass(frozen=True, slots=True)
class GpuHolder:
    """Who has a GPU, and for what.

    Attributes:
        job: Id of the job whose worker holds it; ``attempt``: which start of it.
        bench: Id of the lease of the bench that holds it.
        project: Of the job; empty for benches, and where nobody holds it.
    """

    occupation: GpuUseKind
    user: str = ""
    project: str = ""
    job: str = ""
    attempt: int = 0
    bench: str = ""


@dataclass(frozen=True, slots=True)
class GpuInterval:
    """One GPU, from ``begin`` until ``end``, in one hand; those of one GPU never overlap (R1)."""

    gpu: str
    node: str
    model: str
    begin: float
    end: float
    occupant: GpuHolder


class MeasuredHolder(Protocol):
    """Who had the GPU that was measured; all are None for nobody."""

    @property
    def job(self) -> str | None: ...
    @property
    def attempt(self) -> int | None: ...
    @property
    def bench(self) -> str | None: ...


class MeasuredUse(Protocol):
    """What was measured of one GPU in the hands of one holder, in the time after ``begin``.

    Attributes:
        span_s: Length of that time; ``covered_s``: seconds of it that samples of this holder speak
            for; ``active_s``: those of them in which a kernel ran.
        sm_covered_s, sm_active_s: Alike, of the multiprocessors; 0 where they are not measured.
        energy_j: Joules, None or 0 where they are not measured.
        simulated: Nothing was measured: the GPU is simulated.
    """

    @property
    def gpu(self) -> str: ...
    @property
    def begin(self) -> float: ...
    @property
    def span_s(self) -> float: ...
    @property
    def covered_s(self) -> float: ...
    @property
    def active_s(self) -> float: ...
    @property
    def sm_covered_s(self) -> float: ...
    @property
    def sm_active_s(self) -> float: ...
    @property
    def energy_j(self) -> float | None: ...
    @property
    def simulated(self) -> bool: ...
    @property
    def holder(self) -> MeasuredHolder: ...


@dataclass(frozen=True, slots=True)
class Loss:
    """Work of an attempt that a pause discarded: done between the last save and the end."""

    job: str
    attempt: int
    begin: float
    end: float
