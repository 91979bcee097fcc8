"""Make the note of an ended job from its kept numbers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from benchpool_scheduler import phrases
from benchpool_scheduler.accounting.job_notes.finished import MEASURED, FinishedJob
from benchpool_scheduler.accounting.job_notes.rules import RULES
from benchpool_scheduler.contract.job_usage import JobUsage, UsageFigure

FIGURES = 3
LEAST_SAMPLES = 10
"""Number of samples per GPU below which only rules that need fewer samples apply."""

SHORT_S = 300.0
"""Run time below which few samples are expected, in seconds."""

SIMULATED = "Its GPUs were simulated: they were as busy as its processors."


def note(job: FinishedJob, id_: str) -> JobUsage:
    """Return the note of a job; it omits unmeasured values, and rules that need them do not apply.

    Args:
        id_: The whole ID.
    """
    measured = job.measured
    rule, text, change, option = _found(job)
    return JobUsage(
        job=id_,
        figures=list(islice(_figures(job), FIGURES)),
        text=f"{SIMULATED} {text}" if measured.simulated else text,
        change=change,
        option=option,
        rule=rule,
        coverage=round(measured.coverage, 4),
        simulated=measured.simulated,
        measured=measured,
    )


def unmeasured(id_: str) -> JobUsage:
    """Return the note of a job without measurements."""
    return JobUsage(job=id_, figures=[], text="Its resource use was not measured.")


def _found(job: FinishedJob) -> tuple[str | None, str, str, str]:
    """Return the name of the rule that applies, the diagnosis, the change and its option."""
    measured = job.measured
    doubt = _doubt(job)
    for rule in RULES:
        if (not doubt or rule.samples < LEAST_SAMPLES) and rule.finds(job):
            found = rule.advises(job)
            return rule.name, found.text, found.change, found.option
    if doubt:
        return None, doubt, "", ""
    unknown = _unknown_processors(job)
    if measured.simulated:
        return None, f"Nothing stands out that should be changed.{unknown}", "", ""
    whose = "GPU was" if measured.gpus == 1 else "GPUs were"
    busy = f"busy {phrases.share(measured.activity)} of the time"
    return None, f"Its {whose} {busy}; nothing stands out that should be changed.{unknown}", "", ""


def _unknown_processors(job: FinishedJob) -> str:
    """Return a sentence if the processors were not measured enough for the rules, else ""."""
    measured = job.measured
    if job.used_cpus is not None:
        return ""
    if not measured.worker_covered_s:
        return " Its CPU use was not measured."
    part = (
        phrases.percent(measured.worker_covered_s / measured.worker_s)
        if measured.worker_s
        else "a part"
    )
    return f" Its CPU use was measured for only {part} of the time."


def _doubt(job: FinishedJob) -> str:
    """Return why a job has no meaningful averages; empty if it has."""
    measured = job.measured
    if measured.ran_s < SHORT_S and (not measured.covered_s or measured.samples < LEAST_SAMPLES):
        return f"It ran for {phrases.duration(measured.ran_s)}, too short for advice."
    if not measured.covered_s:
        return "Its GPU use was not measured."
    if measured.coverage < MEASURED or measured.samples < LEAST_SAMPLES:
        part, few = phrases.percent(measured.coverage), phrases.count(measured.samples, "sample")
        return f"Only {part} of its GPU time was measured, {few} per GPU: too little for advice."
    return ""


def _figures(job: FinishedJob) -> Iterator[UsageFigure]:
    """Yield the measured numbers, the most important first."""
    measured, used = job.measured, job.used_cpus
    if measured.covered_s:
        simulated = " (simulated)" if measured.simulated else ""
        yield UsageFigure("GPU busy", f"{phrases.share(measured.activity)}{simulated}")
    if measured.gpu_memory_gib is not None:
        of = measured.gpu_memory_total_gib
        most = f"{measured.gpu_memory_gib:.1f} GiB"
        yield UsageFigure("GPU memory", f"{most} of {of:.0f}" if of else most)
    if used is not None:
        given = f" of {measured.cpus:g}" if measured.cpus else ""
        yield UsageFigure("CPUs", f"{used:.1f}{given}")
    if measured.memory_gib is not None:
        yield UsageFigure("Memory", phrases.data_size(round(measured.memory_gib * 1024**3)))
    if measured.energy_j:
        yield UsageFigure("Energy", phrases.energy(measured.energy_j / 3600))
    if measured.held_s:
        yield UsageFigure("GPU-hours", phrases.gpu_hours(measured.held_s / 3600))
