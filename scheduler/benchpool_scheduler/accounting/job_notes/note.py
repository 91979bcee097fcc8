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
    told = job.measured
    rule, text, change, option = _found(job)
    return JobUsage(
        job=id_,
        figures=list(islice(_figures(job), FIGURES)),
        text=f"{SIMULATED} {text}" if told.simulated else text,
        change=change,
        option=option,
        rule=rule,
        coverage=round(told.coverage, 4),
        simulated=told.simulated,
        measured=told,
    )


def unmeasured(id_: str) -> JobUsage:
    """Return the note of a job without measurements."""
    return JobUsage(job=id_, figures=[], text="Its resource use was not measured.")


def _found(job: FinishedJob) -> tuple[str | None, str, str, str]:
    """Return the name of the rule that applies, the diagnosis, the change and its option."""
    told = job.measured
    doubt = _doubt(job)
    for rule in RULES:
        if (not doubt or rule.samples < LEAST_SAMPLES) and rule.finds(job):
            found = rule.advises(job)
            return rule.name, found.text, found.change, found.option
    if doubt:
        return None, doubt, "", ""
    unknown = _unknown_processors(job)
    if told.simulated:
        return None, f"Nothing stands out that should be changed.{unknown}", "", ""
    whose = "GPU was" if told.gpus == 1 else "GPUs were"
    busy = f"busy {phrases.share(told.activity)} of the time"
    return None, f"Its {whose} {busy}; nothing stands out that should be changed.{unknown}", "", ""


def _unknown_processors(job: FinishedJob) -> str:
    """Return a sentence if the processors were not measured enough for the rules, else ""."""
    told = job.measured
    if job.used_cpus is not None:
        return ""
    if not told.worker_covered_s:
        return " Its CPU use was not measured."
    part = phrases.percent(told.worker_covered_s / told.worker_s) if told.worker_s else "a part"
    return f" Its CPU use was measured for only {part} of the time."


def _doubt(job: FinishedJob) -> str:
    """Return why a job has no meaningful averages; empty if it has."""
    told = job.measured
    if told.ran_s < SHORT_S and (not told.covered_s or told.samples < LEAST_SAMPLES):
        return f"It ran for {phrases.duration(told.ran_s)}, too short for advice."
    if not told.covered_s:
        return "Its GPU use was not measured."
    if told.coverage < MEASURED or told.samples < LEAST_SAMPLES:
        part, few = phrases.percent(told.coverage), phrases.count(told.samples, "sample")
        return f"Only {part} of its GPU time was measured, {few} per GPU: too little for advice."
    return ""


def _figures(job: FinishedJob) -> Iterator[UsageFigure]:
    """Yield the measured numbers, the most important first."""
    told, used = job.measured, job.used_cpus
    if told.covered_s:
        simulated = " (simulated)" if told.simulated else ""
        yield UsageFigure("GPU busy", f"{phrases.share(told.activity)}{simulated}")
    if told.gpu_memory_gib is not None:
        of = told.gpu_memory_total_gib
        most = f"{told.gpu_memory_gib:.1f} GiB"
        yield UsageFigure("GPU memory", f"{most} of {of:.0f}" if of else most)
    if used is not None:
        given = f" of {told.cpus:g}" if told.cpus else ""
        yield UsageFigure("CPUs", f"{used:.1f}{given}")
    if told.memory_gib is not None:
        yield UsageFigure("Memory", phrases.data_size(round(told.memory_gib * 1024**3)))
    if told.energy_j:
        yield UsageFigure("Energy", phrases.energy(told.energy_j / 3600))
    if told.held_s:
        yield UsageFigure("GPU-hours", phrases.gpu_hours(told.held_s / 3600))
