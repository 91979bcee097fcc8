"""Random complete histories of GPUs, with samples that extend beyond the ends of holders.

Each history derives from a number, so that ten thousand are quick to draw and a failing one has a
name.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from hypothesis import strategies as st

from benchpool_scheduler.accounting.classes import GpuUseKind
from benchpool_scheduler.accounting.gpu_intervals import GpuHolder, GpuInterval, Loss

BEGIN, LONGEST = 1_000_000.0, 7200.0


@dataclass(frozen=True, slots=True)
class MeasuredHolder:
    """Holder of a GPU to which samples belong."""

    job: str | None = None
    attempt: int | None = None
    bench: str | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """Bucket of samples of one holder."""

    gpu: str
    begin: float
    span_s: float
    covered_s: float
    active_s: float
    energy_j: float | None = None
    simulated: bool = False
    holder: MeasuredHolder = MeasuredHolder()
    sm_covered_s: float = 0.0
    sm_active_s: float = 0.0


@dataclass(frozen=True, slots=True)
class GpuHistory:
    """Input of a report; ``end`` is the end of each GPU's record."""

    gpus: int
    end: float
    occupancies: tuple[GpuInterval, ...]
    activity: tuple[Measured, ...]
    losses: tuple[Loss, ...]


shares = st.floats(0, 1)


def histories() -> st.SearchStrategy[GpuHistory]:
    """Draw histories in which each GPU is recorded from the beginning to the end, without gaps."""
    return st.integers(0, 2**32 - 1).map(history_of)


def history_of(number: int) -> GpuHistory:
    """Return the history of a number."""
    random = Random(number)
    gpus, end = random.randint(1, 3), BEGIN + random.uniform(10.0, LONGEST)
    intervals: list[GpuInterval] = []
    activity: list[Measured] = []
    for number_ in range(gpus):
        gpu = f"gpu-{number_}"
        cuts = (random.uniform(BEGIN, end) for _ in range(random.randint(0, 6)))
        intervals += [
            GpuInterval(gpu, f"node-{number_ % 2}", "H200", begin, until, _occupant(random))
            for begin, until in itertools.pairwise([BEGIN, *sorted(cuts), end])
        ]
        activity += _buckets(random, gpu, end)
    losses = (_loss(random, end) for _ in range(random.randint(0, 2)))
    return GpuHistory(gpus, end, tuple(intervals), tuple(activity), tuple(losses))


def _occupant(random: Random) -> GpuHolder:
    kind = random.choice(list(GpuUseKind))
    if kind is GpuUseKind.BENCH:
        return GpuHolder(kind, user=random.choice("uv"), bench="lease")
    if kind in (GpuUseKind.TRAINING, GpuUseKind.PREPARING):
        job = random.choice("ab")
        return GpuHolder(kind, f"user-{job}", f"project-{job}", job, random.randint(1, 2))
    return GpuHolder(kind)


def _buckets(random: Random, gpu: str, end: float) -> Iterator[Measured]:
    """Yield buckets of one length, one for each holder in a step.

    Some are missing, some are half covered, and some belong to another holder.
    """
    span_s = random.choice((10.0, 60.0, 3600.0))
    first = BEGIN - random.random() * span_s
    steps = int((end - first) / span_s) + 1
    for step in sorted(random.sample(range(steps), min(steps, random.randint(0, 20)))):
        for holder in dict.fromkeys(_holder(random) for _ in range(random.randint(1, 2))):
            covered_s = span_s * random.choice((0.0, 1.0, random.random()))
            yield Measured(
                gpu,
                first + step * span_s,
                span_s,
                covered_s,
                covered_s * random.choice((0.0, 1.0, random.random())),
                energy_j=300.0,
                holder=holder,
            )


def _holder(random: Random) -> MeasuredHolder:
    kind = random.randint(0, 2)
    if kind == 0:
        return MeasuredHolder(random.choice("ab"), random.randint(1, 2))
    return MeasuredHolder(bench="lease" if kind == 1 else None)


def _loss(random: Random, end: float) -> Loss:
    begin, until = sorted((random.uniform(BEGIN, end), random.uniform(BEGIN, end)))
    return Loss(random.choice("ab"), random.randint(1, 2), begin, until)
