"""Operations on parked benches."""

from __future__ import annotations

from benchpool_scheduler.contract.forms import PlainVerb
from benchpool_scheduler.contract.operation import Given, given, operation
from benchpool_scheduler.contract.parking import ParkedBench


class ParkingOperations:
    """Park a bench and bring it back: experimental, on one machine, off by default."""

    @operation(
        "GET",
        "parked-benches",
        list[ParkedBench],
        lab=True,
        verb=PlainVerb(
            ("parked",),
            "List parked benches, and those being parked or brought back (experimental).",
            "Administrators see all parked benches, others their own.",
        ),
        tool=True,
    )
    def parked_benches(self) -> Given:
        """List the benches that are parked.

        Benches that are being parked or brought back are included.
        """
        return given()

    @operation(
        "POST",
        "leases/{lease}/park",
        ParkedBench,
        lab=True,
        statuses={202: "Parking has begun."},
        verb=PlainVerb(
            ("park",),
            "Lend the GPU of your bench while its kernel waits in memory (experimental).",
            "LEASE is the bench's id. `benchpool unpark` brings it back.",
        ),
    )
    def park_bench(self, id_: str) -> Given:
        """Copy the GPU memory of a bench's kernel to host memory and lend its GPU.

        For its owner and administrators. A refusal names every condition that is not met.
        """
        return given(lease=id_)

    @operation(
        "POST",
        "leases/{lease}/unpark",
        ParkedBench,
        lab=True,
        statuses={202: "The return has begun."},
        verb=PlainVerb(
            ("unpark",),
            "Bring a parked bench back; a job that borrows its GPU is paused (experimental).",
            "LEASE is the bench's id.",
        ),
    )
    def unpark_bench(self, id_: str) -> Given:
        """Bring a parked bench back to its GPU.

        For its owner and administrators. A job that borrows the GPU is paused with its notice.
        """
        return given(lease=id_)
