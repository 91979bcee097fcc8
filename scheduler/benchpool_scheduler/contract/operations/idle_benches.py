"""The operations on benches that may be idle."""

from __future__ import annotations

from benchpool_scheduler.contract.forms import PlainVerb
from benchpool_scheduler.contract.idle_benches import BenchActivity, BenchIdleness
from benchpool_scheduler.contract.operation import Given, given, operation


class IdleBenchOperations:
    """What notebook servers report, and what the owner of a bench answers."""

    @operation(
        "GET",
        "benches",
        list[BenchIdleness],
        lab=True,
        verb=PlainVerb(
            ("benches",),
            "Say which benches are idle, for how long, and what comes next.",
            "Administrators see everybody's, others their own. LEASE is the id of a bench.",
        ),
        tool=True,
    )
    def benches(self) -> Given:
        """List benches with what is known of their idle time.

        The one that is due first comes first.
        """
        return given()

    @operation("PUT", "benches/{lease}/activity", BenchIdleness, body=BenchActivity, changes=False)
    def report_bench_activity(self, id_: str, activity: BenchActivity) -> Given:
        """Report what a notebook server does.

        For the server itself; the answer says where its bench stands, and what it is to do.
        """
        return given(activity, lease=id_)

    @operation(
        "POST",
        "benches/{lease}/keep",
        BenchIdleness,
        lab=True,
        verb=PlainVerb(
            ("keep-bench",),
            "Keep an idle bench of yours for a while.",
            "The site sets for how long and how often. `benchpool benches` lists ids.",
        ),
    )
    def keep_bench(self, id_: str) -> Given:
        """Keep an idle bench for a while.

        For its owner, a few times a day; the site sets how long and how often.
        """
        return given(lease=id_)

    @operation(
        "POST",
        "benches/{lease}/release",
        BenchIdleness,
        lab=True,
        verb=PlainVerb(
            ("give-back",),
            "Give the GPUs of a bench of yours back.",
            "Its kernels lose their variables; the server is stopped where it cannot go on without "
            "its GPUs. `benchpool benches` lists ids.",
        ),
    )
    def release_bench(self, id_: str) -> Given:
        """Give the GPUs of a bench back.

        Its kernels are restarted without them where the notebook server can do that; else, and
        where it has not done so within a minute, the server is stopped.
        """
        return given(lease=id_)

    @operation(
        "POST",
        "benches/{lease}/released",
        type(None),
        statuses={204: "Given back, or gone already."},
    )
    def released_bench(self, id_: str) -> Given:
        """Say that nothing of a notebook server holds its GPUs any more.

        For the server itself, after it was told to; it is refused while a process still does. A
        bench that is gone already is no error.
        """
        return given(lease=id_)
