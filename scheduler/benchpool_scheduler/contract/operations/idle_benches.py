"""Operations on idle benches."""

from __future__ import annotations

from benchpool_scheduler.contract.forms import PlainVerb
from benchpool_scheduler.contract.idle_benches import BenchActivity, BenchIdleness
from benchpool_scheduler.contract.operation import Given, given, operation


class IdleBenchOperations:
    """Reports of notebook servers, and actions of a bench's owner."""

    @operation(
        "GET",
        "benches",
        list[BenchIdleness],
        lab=True,
        verb=PlainVerb(
            ("benches",),
            "List benches with their idle time and the next step.",
            "Administrators see all benches, others their own. LEASE is the id of a bench.",
        ),
        tool=True,
    )
    def benches(self) -> Given:
        """List benches with their idle time.

        The one that is due first comes first.
        """
        return given()

    @operation("PUT", "benches/{lease}/activity", BenchIdleness, body=BenchActivity, changes=False)
    def report_bench_activity(self, id_: str, activity: BenchActivity) -> Given:
        """Report the activity of a notebook server.

        For the server itself. The answer has the state of its bench, and a command for the server.
        """
        return given(activity, lease=id_)

    @operation(
        "POST",
        "benches/{lease}/keep",
        BenchIdleness,
        lab=True,
        verb=PlainVerb(
            ("keep-bench",),
            "Keep one of your idle benches for a while.",
            "The site sets how long and how often. `benchpool benches` lists IDs.",
        ),
    )
    def keep_bench(self, id_: str) -> Given:
        """Keep an idle bench for a while.

        For its owner, a few times a day. The site sets the length and the number of keeps.
        """
        return given(lease=id_)

    @operation(
        "POST",
        "benches/{lease}/release",
        BenchIdleness,
        lab=True,
        verb=PlainVerb(
            ("give-back",),
            "Release the GPUs of one of your benches.",
            "Its kernels lose their variables. The server is stopped if it cannot continue without "
            "its GPUs. `benchpool benches` lists IDs.",
        ),
    )
    def release_bench(self, id_: str) -> Given:
        """Release the GPUs of a bench.

        Its kernels are restarted without GPUs if the notebook server supports it. The server is
        stopped if it does not, or if it has not finished within a minute.
        """
        return given(lease=id_)

    @operation(
        "POST",
        "benches/{lease}/released",
        type(None),
        statuses={204: "Released, or already gone."},
    )
    def released_bench(self, id_: str) -> Given:
        """Confirm that no process of a notebook server holds its GPUs any more.

        For the server itself, after a release command. The request is rejected while a process
        still holds one. A bench that is already gone is not an error.
        """
        return given(lease=id_)
