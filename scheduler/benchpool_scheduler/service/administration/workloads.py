"""Results of a workload replayed in two pools, as types of the contract."""

from __future__ import annotations

from benchpool_scheduler import contract
from benchpool_scheduler.phrases import count, duration, percent
from benchpool_scheduler.service.administration import workload_whys
from benchpool_scheduler.simulation.replay.summary import Summary
from benchpool_scheduler.simulation.whatif import ProjectComparison, Replayed, Waits

PLACES = 4


def answer(found: Replayed) -> contract.WorkloadWhatIf:
    """Return the results of both replays, with the reasons for worse figures."""
    before, after = (
        _figures(side, refused)
        for side, refused in zip((found.before, found.after), found.refused, strict=True)
    )
    return contract.WorkloadWhatIf(
        text=_sentence(found),
        jobs=found.before.jobs,
        left_out=found.left_out,
        before=before,
        after=after,
        projects=[_project(it) for it in found.projects],
        why={
            key: why
            for key, why in workload_whys.whys(found).items()
            if getattr(after, key) > getattr(before, key)
        },
    )


def _sentence(found: Replayed) -> str:
    was, would = found.before, found.after
    return (
        f"Over {count(was.jobs, 'recorded job')} the mean wait would be "
        f"{duration(would.mean_wait_h * 3600)} instead of {duration(was.mean_wait_h * 3600)}, with "
        f"{percent(would.allocated_utilisation)} of "
        f"{would.gpus} GPUs in use instead of {percent(was.allocated_utilisation)} of {was.gpus}."
        f"{_refused(*found.refused)}"
    )


def _refused(before: int, after: int) -> str:
    """Return the effect of GPU-hour budgets in a sentence; empty if they refuse no job.

    >>> _refused(0, 1)
    ' Budgets of GPU-hours would refuse 1 job instead of 0, until the next month begins.'
    """
    if not before and not after:
        return ""
    return (
        f" Budgets of GPU-hours would refuse {count(after, 'job')} instead of {before}, until the "
        "next month begins."
    )


def _figures(of: Summary, refused: int) -> contract.ReplayFigures:
    return contract.ReplayFigures(
        gpus=of.gpus,
        allocated_utilisation=round(of.allocated_utilisation, PLACES),
        useful_utilisation=round(of.useful_utilisation, PLACES),
        mean_wait_h=round(of.mean_wait_h, PLACES),
        p50_wait_h=round(of.p50_wait_h, PLACES),
        p95_wait_h=round(of.p95_wait_h, PLACES),
        p99_wait_h=round(of.p99_wait_h, PLACES),
        short_job_wait_min=round(of.short_job_wait_min, PLACES),
        mean_jct_h=round(of.mean_jct_h, PLACES),
        preemptions_per_job=round(of.preemptions_per_job, PLACES),
        lost_gpu_h=round(of.lost_gpu_h, PLACES),
        refused=refused,
    )


def _project(of: ProjectComparison) -> contract.ProjectReplay:
    before, after = _waits(of.before), _waits(of.after)
    worse = after.mean_wait_h > before.mean_wait_h
    return contract.ProjectReplay(
        name=of.name,
        jobs=of.jobs,
        gpu_h=round(of.gpu_h, PLACES),
        before=before,
        after=after,
        why=workload_whys.why_longer(of.causes) if worse else "",
    )


def _waits(of: Waits) -> contract.ProjectWaits:
    return contract.ProjectWaits(
        mean_wait_h=round(of.mean_wait_h, PLACES),
        p95_wait_h=round(of.p95_wait_h, PLACES),
        preemptions=of.preemptions,
        lost_gpu_h=round(of.lost_gpu_h, PLACES),
    )
