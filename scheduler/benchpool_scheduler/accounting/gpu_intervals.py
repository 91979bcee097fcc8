"""Recorded history of GPUs and other input of its division. Times are epoch seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from benchpool_scheduler.accounting.classes import GpuUseKind


@dataclass(frozen=True, slots=True)
class GpuHolder:
    """Holder of a GPU, and its kind of use.

    Attributes:
        job: ID of the job whose worker holds it; ``attempt``: the number of its start.
        bench: Lease ID of the bench that holds it.
        project: Project of the job; empty for benches and for unheld GPUs.
    """

    occupation: GpuUseKind
    user: str = ""
    project: str = ""
    job: str = ""
    attempt: int = 0
    bench: str = ""


@dataclass(frozen=True, slots=True)
class GpuInterval:
    """One GPU, from ``begin`` until ``end``, with one holder; no overlaps within a GPU (R1)."""

    gpu: str
    node: str
    model: str
    begin: float
    end: float
    occupant: GpuHolder


class MeasuredHolder(Protocol):
    """Holder of a measured GPU; all fields are None if it had no holder."""

    @property
    def job(self) -> str | None: ...
    @property
    def attempt(self) -> int | None: ...
    @property
    def bench(self) -> str | None: ...


class MeasuredUse(Protocol):
    """Measurements of one GPU with one holder, in the time after ``begin``.

    Attributes:
        span_s: Length of that time. ``covered_s``: seconds of it that samples of this holder
            cover. ``active_s``: those of them in which a kernel ran.
        sm_covered_s, sm_active_s: The same for the multiprocessors; 0 if they are not measured.
        energy_j: Joules, None or 0 if they are not measured.
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
    """Work of an attempt that a pause discarded, between the last save and the end."""

    job: str
    attempt: int
    begin: float
    end: float
