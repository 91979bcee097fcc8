"""Verdict on every job sent to a machine on which any process may have been killed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from benchpool_scheduler.contract import Attempt, Job, State
from benchpool_support import hands
from benchpool_support.hands import WorkerStatements

WITH_A_REQUEST = frozenset({"pause", "preempt", "cancel"})
"""Ends of an attempt by request, for which a failure counts as that request fulfilled."""


@dataclass(frozen=True, slots=True)
class KilledSupervisor:
    """Supervisor that was killed.

    Attributes:
        recorded: The end of its worker was already on record.
        gone: Time when all its processes had ended, in epoch seconds.
    """

    recorded: bool
    gone: float


@dataclass(frozen=True, slots=True)
class Sent:
    """Facts about an accepted job that are known apart from the service.

    Attributes:
        steps: Number of steps, after which the job exits with ``code``.
        cancelled: A user requested its cancellation, at whatever time.
    """

    steps: int
    code: int
    cancelled: bool = False


Killed = Callable[[str, int], Mapping[int, KilledSupervisor]]
"""Function that returns the killed supervisors of a job's attempt by worker."""


@dataclass
class Finding:
    """The verdict; each list names violations.

    ``unseen`` are attempts that run again by design: a supervisor was killed before it could record
    the end of its worker. ``outlived``: a worker continued after its supervisor was killed.
    """

    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    mis_ended: list[str] = field(default_factory=list)
    outlived: list[str] = field(default_factory=list)
    two_hands: list[str] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)
    unseen: int = 0

    def __str__(self) -> str:
        names = ("lost", "doubled", "mis_ended", "outlived", "two_hands", "orphans")
        return ", ".join(f"{len(getattr(self, name))} {name.replace('_', ' ')}" for name in names)

    def judge(
        self,
        sent: Mapping[str, Sent],
        reported: Sequence[tuple[Job, Sequence[Attempt]]],
        statements: WorkerStatements,
        killed: Killed,
        people: Collection[str],
    ) -> None:
        """Compare the service's answers with its later records and with the workers' statements.

        Args:
            sent: Accepted jobs by ID.
            reported: Each job with its attempts, as the service reports them.
            people: Users who submitted jobs.
        """
        by_id = {job.id: (job, attempts) for job, attempts in reported}
        self.lost = [id_ for id_ in sent if id_ not in by_id]
        self.doubled = [
            f"{job.id} ({job.name}) was never told"
            for job, _ in reported
            if job.user in people and job.id not in sent
        ]
        for id_, plan in sent.items():
            if id_ in by_id:
                self._judge(plan, *by_id[id_], statements, killed)
        jobs = [one for one in statements.two if str(one["two"]).startswith("job-")]
        self.doubled += [str(one) for one in jobs]
        self.two_hands = [str(one) for one in statements.two if one not in jobs]

    def _judge(
        self,
        plan: Sent,
        job: Job,
        attempts: Sequence[Attempt],
        statements: WorkerStatements,
        killed: Killed,
    ) -> None:
        # One worker of a failing gang reports the failure, and the service stops the rest.
        ends = statements.ends_of(job.id, job.workers if plan.code == 0 else 1)
        stopped = {it.attempt for it in attempts if it.ended_by in WITH_A_REQUEST and plan.code}
        by_number = {it: killed(job.id, it) for it in {*ends, *(one.attempt for one in attempts)}}
        unseen = {it for it in ends if any(not one.recorded for one in by_number[it].values())}
        self.unseen += len(unseen)
        over = [it for it in ends if it not in unseen | stopped]
        about = (
            f"{job.id}: {job.state} with {job.exit_code}; {ends} came to their end, "
            f"{sorted(statements.begun[job.id])} began, {plan.code} was to be the exit code; "
            f"{[(it.attempt, it.ended_by, it.exit_code) for it in attempts]}; {by_number}; "
            f"{[(it, statements.done_at[job.id, it]) for it in ends]}"
        )
        if len(over) > 1:
            self.doubled.append(about)
        for number, supervisors in by_number.items():
            done = statements.done_at[job.id, number]
            if any(done.get(rank, 0.0) > one.gone for rank, one in supervisors.items()):
                self.outlived.append(about)
        digests = {end for attempt in ends for end in statements.done[job.id, attempt].values()}
        if digests - {(hands.digest_of(plan.steps), plan.code)}:
            self.mis_ended.append(f"{about}; {digests}")
        right = State.SUCCEEDED if plan.code == 0 else State.FAILED
        came = job.state is right and bool(ends) and job.exit_code == plan.code
        if not came and not (plan.cancelled and job.state is State.CANCELLED):
            self.mis_ended.append(about)

    def hold(self) -> None:
        """Raise with the findings, if there are any."""
        wrong = {name: it for name, it in vars(self).items() if it and name != "unseen"}
        assert not wrong, f"{self}: {wrong}"
