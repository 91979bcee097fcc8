"""Possible victims of a claim, found by trying every set of them (R15-R19)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from benchpool_scheduler.core.model import Activity, JobFacts, JobId, ProjectName, Snapshot, Worker
from benchpool_support.reference.holdings import (
    GPUS,
    NOTHING,
    children,
    held,
    named,
    need,
    path,
    plus,
    times,
    without,
)
from benchpool_support.reference.places import startable
from benchpool_support.reference.shares import FairShares, fair_shares, pool_total


@dataclass(frozen=True, slots=True)
class Piece:
    """Unit of preemption: one surplus worker, or a whole job with all of its workers."""

    job: JobFacts
    workers: tuple[Worker, ...]

    @property
    def whole(self) -> bool:
        """Return whether the job stops."""
        return len(self.workers) == len(self.job.held)


Victims = tuple[Piece, ...]


def protected(snapshot: Snapshot, job: JobFacts) -> bool:
    """Return whether the job may not be stopped now (R19)."""
    least = snapshot.policy.min_runtime_s
    for name in path(snapshot, job.project):
        own = named(snapshot, name).min_runtime_s
        least = least if own is None else own
    policy = snapshot.policy
    often = (
        job.preemptions_last_hour >= policy.preemptions_per_hour
        or job.preemptions_last_day >= policy.preemptions_per_day
    )
    return job.ran_at(snapshot.now_s) < least or often


def pieces(snapshot: Snapshot) -> list[Piece]:
    """Return all pieces that can be preempted for any claimant (R16, R19)."""
    found: list[Piece] = []
    for job in snapshot.jobs:
        if job.activity is Activity.RUNNING and job.spec.preemptible:
            found += [Piece(job, (worker,)) for worker in job.held[job.spec.least_workers :]]
            if not protected(snapshot, job):
                found.append(Piece(job, job.held))
    return found


def lost_gpu_s(snapshot: Snapshot, victims: Sequence[Piece]) -> float:
    """Return the cost of a stop: progress and a restart for every GPU of a minimum gang (R18)."""
    return sum(
        (p.job.unsaved_at(snapshot.now_s) + snapshot.policy.restart_s)
        * float(need(p.job)[GPUS])
        * p.job.spec.least_workers
        for p in victims
        if p.whole
    )


def disturbance(snapshot: Snapshot, victims: Sequence[Piece]) -> tuple[float, int, int]:
    """Return the lost GPU-seconds, the number of stopped jobs and of affected users (R18)."""
    stopped = sum(piece.whole for piece in victims)
    people = {piece.job.user or piece.job.project for piece in victims}
    return lost_gpu_s(snapshot, victims), stopped, len(people)


def taken(victims: Sequence[Piece]) -> dict[JobId, tuple[Worker, ...]]:
    """Return the workers that a set of pieces takes, by job."""
    lost: dict[JobId, tuple[Worker, ...]] = {}
    for piece in victims:
        lost[piece.job.id] = (*lost.get(piece.job.id, ()), *piece.workers)
    return lost


def may_take(
    snapshot: Snapshot, shares: FairShares, claimant: JobFacts, workers: int, victim: JobFacts
) -> bool:
    """Return whether the claimant may preempt this job in the present snapshot (R15)."""
    if claimant.project == victim.project:
        return victim.spec.priority < claimant.spec.priority
    mine, theirs = path(snapshot, claimant.project), path(snapshot, victim.project)
    level = next(i for i, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b)
    asked, now = times(need(claimant), workers), held(snapshot)
    quotas = shares.guaranteed

    def counts(name: ProjectName, r: int, *, share: bool) -> bool:
        return bool(asked[r]) and (quotas[name][r] is not None or (share and r == GPUS))

    def due(name: ProjectName, r: int, *, share: bool) -> Fraction:
        return shares.of[name][r] if share else quotas[name][r] or Fraction(0)

    def above(name: ProjectName, *, share: bool) -> bool:
        return any(
            counts(name, r, share=share) and now[name][r] > due(name, r, share=share)
            for r in range(3)
        )

    def within(name: ProjectName, *, share: bool) -> bool:
        after = plus(now[name], asked)
        return all(
            not counts(name, r, share=share) or after[r] <= due(name, r, share=share)
            for r in range(3)
        )

    by_share = all(within(name, share=True) for name in mine[level:]) and all(
        above(name, share=True) for name in theirs[level:]
    )
    by_quota = all(within(name, share=False) for name in mine[level:]) and above(
        theirs[level], share=False
    )
    return by_share or by_quota


def lawful(
    snapshot: Snapshot, shares: FairShares, claimant: JobFacts, workers: int, victims: Victims
) -> bool:
    """Return whether the victims may be preempted one after the other in some order (R15)."""
    if not victims:
        return True
    for last in victims:
        rest = tuple(piece for piece in victims if piece is not last)
        before = without(snapshot, taken(rest))
        if may_take(before, shares, claimant, workers, last.job) and lawful(
            snapshot, shares, claimant, workers, rest
        ):
            return True
    return False


def one_by_one(
    snapshot: Snapshot, shares: FairShares, claimant: JobFacts, workers: int, victims: Victims
) -> bool:
    """Return whether some order is allowed in which a job first loses its surplus workers."""
    if not victims:
        return True
    for last in victims:
        rest = tuple(piece for piece in victims if piece is not last)
        spare = last.job.held[last.job.spec.least_workers :] if last.whole else ()
        given = (*rest, Piece(last.job, spare)) if spare else rest
        if may_take(
            without(snapshot, taken(given)), shares, claimant, workers, last.job
        ) and one_by_one(snapshot, shares, claimant, workers, rest):
            return True
    return False


def comes_back(
    snapshot: Snapshot,
    shares: FairShares,
    claimant: JobFacts,
    workers: int,
    victims: Victims,
    victim: Piece,
) -> bool:
    """Return whether a victim could reclaim its GPUs although it is due work (R16, R20).

    With all victims gone, the victim fits into the quotas on its side, less what it could reclaim:
    jobs of lower priority in its own project, and what siblings on its side hold beyond their due.
    The claimant does not fit into its quota, or the guarantees above it are overbooked. Inside a
    project both may fit into the share instead.
    """
    mine, theirs = path(snapshot, claimant.project), path(snapshot, victim.job.project)
    own = mine == theirs
    level = next((i for i, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b), 0)
    after = without(snapshot, taken(victims))
    asked = need(victim.job)[GPUS] * (
        victim.job.spec.least_workers if victim.whole else len(victim.workers)
    )
    wanted = need(claimant)[GPUS] * workers

    def within(name: ProjectName, more: Fraction, *, share: bool) -> bool:
        quota = shares.guaranteed[name][GPUS]
        now = held(after)[name][GPUS] + more
        return quota is None or now <= quota or (share and now <= shares.of[name][GPUS])

    if own:
        if all(within(name, wanted, share=True) for name in mine):
            return False
    elif within(mine[level], wanted, share=False) and not overbooked(
        snapshot, shares, mine[:level]
    ):
        return False
    beside = lower_work(after, victim.job)
    for above, name in reversed([*zip((None, *theirs), theirs, strict=False)][level:]):
        if not within(name, asked - beside, share=own):
            return False
        beside += sum(
            beyond(after, shares, sibling.name)
            for sibling in children(snapshot, above)
            if sibling.name != name
        )
    return True


def lower_work(snapshot: Snapshot, victim: JobFacts) -> Fraction:
    """Return the GPUs of work in the victim's project that it could preempt by its priority."""
    return sum(
        (
            need(job)[GPUS] * len(job.held)
            for job in snapshot.jobs
            if job.project == victim.project
            and job.spec.preemptible
            and not protected(snapshot, job)
            and job.activity is Activity.RUNNING
            and job.spec.priority < victim.spec.priority
        ),
        Fraction(0),
    )


def beyond(snapshot: Snapshot, shares: FairShares, name: ProjectName) -> Fraction:
    """Return the GPUs that a project holds beyond its guarantee and its share."""
    quota = shares.guaranteed[name][GPUS]
    if quota is None:
        return Fraction(0)
    return max(Fraction(0), held(snapshot)[name][GPUS] - max(quota, shares.of[name][GPUS]))


def overbooked(snapshot: Snapshot, shares: FairShares, above: Sequence[ProjectName]) -> bool:
    """Return whether children are due more GPUs than the pool, or one of these projects, is."""
    return any(
        sum(shares.of[project.name][GPUS] for project in children(snapshot, name))
        > (pool_total(snapshot, NOTHING) if name is None else shares.of[name])[GPUS]
        for name in (None, *above)
    )


def sets(available: Sequence[Piece]) -> Iterator[Victims]:
    """Yield every set of pieces; a job that stops occurs only once."""
    for size in range(1, len(available) + 1):
        for chosen in combinations(available, size):
            stopped = [piece.job.id for piece in chosen if piece.whole]
            if all(piece.whole or piece.job.id not in stopped for piece in chosen):
                yield chosen


def suffices(snapshot: Snapshot, claimant: JobFacts, workers: int, victims: Victims) -> bool:
    """Return whether the claimant could start after the victims have left (R17)."""
    return startable(without(snapshot, taken(victims)), claimant, workers)


def answers(snapshot: Snapshot, claimant: JobFacts, workers: int) -> list[Victims]:
    """Return every lawful set of victims from which none can be spared (R15-R19)."""
    shares = fair_shares(snapshot)
    found = [
        victims
        for victims in sets(pieces(snapshot))
        if suffices(snapshot, claimant, workers, victims)
        and lawful(snapshot, shares, claimant, workers, victims)
        and not any(
            comes_back(snapshot, shares, claimant, workers, victims, victim) for victim in victims
        )
    ]
    return [v for v in found if not any(_part_of(smaller, v) for smaller in found)]


def _part_of(smaller: Victims, larger: Victims) -> bool:
    """Return whether the first set takes a proper part of the GPUs of the second."""
    whole = {gpu for piece in larger for worker in piece.workers for gpu in worker.gpus}
    part = {gpu for piece in smaller for worker in piece.workers for gpu in worker.gpus}
    return part < whole
