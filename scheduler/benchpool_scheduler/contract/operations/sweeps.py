"""Operations on sweeps: many runs of one submission, with different values."""

from __future__ import annotations

from benchpool_scheduler.contract.forms import PlainVerb
from benchpool_scheduler.contract.operation import MIB, Given, Repeat, given, operation
from benchpool_scheduler.contract.sweeps import (
    Sweep,
    SweepPreview,
    SweepRequest,
    SweepsQuery,
    SweepStop,
)


class SweepOperations:
    """Creation, listing and stopping of sweeps."""

    @operation(
        "POST",
        "sweeps",
        Sweep,
        body=SweepRequest,
        max_body=16 * MIB,
        lab=True,
        statuses={201: "Begun. A repeated key returns the first sweep."},
        repeat=Repeat.BY_KEY,
    )
    def begin_sweep(self, asked: SweepRequest) -> Given:
        """Create a sweep. Its first trials are jobs when the call returns."""
        return given(body=asked)

    @operation(
        "POST",
        "sweeps/preview",
        SweepPreview,
        body=SweepRequest,
        max_body=16 * MIB,
        lab=True,
        changes=False,
    )
    def preview_sweep(self, asked: SweepRequest) -> Given:
        """Preview the trials and the cost of a sweep without creating it."""
        return given(body=asked)

    @operation(
        "GET",
        "sweeps",
        list[Sweep],
        query=SweepsQuery,
        lab=True,
        verb=PlainVerb(("sweeps",), "List your sweeps, newest first."),
        tool=True,
    )
    def sweeps(self, all: bool = False, limit: int = 100) -> Given:
        """List sweeps, newest first: your own, or all that you may see."""
        return given(query={"all": all, "limit": limit})

    @operation(
        "GET",
        "sweeps/{sweep}",
        Sweep,
        lab=True,
        verb=PlainVerb(("sweep",), "Show a sweep and its trials, the best first."),
        tool=True,
    )
    def sweep(self, id_: str) -> Given:
        """Read a sweep with its trials, best first."""
        return given(sweep=id_)

    @operation(
        "POST",
        "sweeps/{sweep}/stop",
        Sweep,
        body=SweepStop,
        lab=True,
        verb=PlainVerb(
            ("stop-sweep",),
            "Stop a sweep: no further trials begin, and running ones are ended.",
            "Files that they have saved stay. A second call can end trials that the first one let "
            "finish.",
        ),
        tool=True,
    )
    def stop_sweep(self, id_: str, asked: SweepStop) -> Given:
        """Stop a sweep: no further trials begin, and running ones end unless they may finish."""
        return given(body=asked, sweep=id_)
