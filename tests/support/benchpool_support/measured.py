"""Samples for tests, and a sampler with scripted samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hypothesis import strategies as st

from benchpool_scheduler.telemetry import NO_HOLDER, GpuSample, HeldSample, Holder

JOB = Holder(job="j" * 26, attempt=1, worker=0, user="susan", project="vision")
BENCH = Holder(bench="lease-1", server="", user="tom")

shares = st.none() | st.floats(0, 1)
samples = st.builds(
    GpuSample,
    at=st.floats(10_000, 200_000),
    span_s=st.floats(0, 1_000),
    gpu=st.sampled_from(["GPU-a", "GPU-b"]),
    activity=shares,
    sm_activity=shares,
    memory_used_gib=st.none() | st.floats(0, 80),
    power_w=st.none() | st.floats(0, 700),
    energy_j=st.none() | st.floats(0, 1e6),
    xid=st.none() | st.just(79),
    throttled=st.sampled_from([(), ("power",)]),
)
held_samples = st.lists(
    st.builds(HeldSample, samples, st.sampled_from([NO_HOLDER, JOB, BENCH])), max_size=8
)


def steady(
    gpu: str,
    begin: float,
    end: float,
    activity: float | None,
    holder: Holder = NO_HOLDER,
    span_s: float = 10.0,
) -> list[HeldSample]:
    """Return samples without a gap between two times, at 100 W and with 8 of 80 GiB used."""
    times = range(1, round((end - begin) / span_s) + 1)
    return [
        HeldSample(
            GpuSample(
                at=begin + number * span_s,
                span_s=span_s,
                gpu=gpu,
                activity=activity,
                memory_used_gib=8.0,
                memory_total_gib=80.0,
                power_w=100.0,
                energy_j=100.0 * span_s,
            ),
            holder,
        )
        for number in times
    ]


class ScriptedSampler:
    """Sampler for tests that takes its samples from a function, including errors.

    Attributes:
        calls: Number of calls of ``sample``.
    """

    def __init__(self, sample_of: Callable[[str, float], GpuSample | None]) -> None:
        self._sample_of = sample_of
        self.calls = 0
        self.closed = False
        self.problem: str | None = None

    def sample(
        self, gpus: Sequence[str], now: float, cpu_share: Mapping[str, float]
    ) -> Sequence[GpuSample]:
        """Return the function's sample of each GPU."""
        self.calls += 1
        samples = [self._sample_of(gpu, now) for gpu in gpus]
        return [it for it in samples if it is not None]

    def close(self) -> None:
        """Record the call."""
        self.closed = True
