"""Advice of the rules: a sentence about the measurement, and one change.

A named option is one of ``submit`` and ``%%train``, with a value that this pool can provide.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from benchpool_scheduler import phrases
from benchpool_scheduler.accounting.job_notes.finished import FinishedJob
from benchpool_scheduler.contract.options import FLAGS

MORE = 1.25
"""Safety factor: advised size over the used or requested size."""


@dataclass(frozen=True, slots=True)
class NoteAdvice:
    """Advice: ``text`` the diagnosis, ``change`` the remedy, ``option`` the option for it."""

    text: str
    change: str
    option: str = ""


def driver_errors(job: FinishedJob) -> NoteAdvice:
    """Return the advice for a job with GPU driver errors."""
    return NoteAdvice(
        f"The driver reported {phrases.count(job.measured.xids, 'error')} on its GPUs.",
        f"Report this to an administrator. `benchpool show {job.short_id}` lists the machines.",
    )


def gpu_memory_full(job: FinishedJob) -> NoteAdvice:
    """Return the advice for a job that failed with full GPU memory."""
    text = f"It failed, and the memory of a GPU was {_percent(job.gpu_memory)} full."
    larger = _model(job, above=job.measured.gpu_memory_total_gib)
    if larger is None:
        return NoteAdvice(text, "If it ran out of memory, use smaller batches.")
    return NoteAdvice(
        text,
        f"If it ran out of memory, use a GPU with more: {larger} has "
        f"{job.pool.models[larger]:.0f} GiB.",
        _option("gpu_models", larger),
    )


def memory_full(job: FinishedJob) -> NoteAdvice:
    """Return the advice for a job with a worker that used all its requested memory."""
    used, asked = job.measured.memory_gib or 0.0, job.spec.memory_gib
    wanted = ceil(MORE * max(used, asked))
    text = f"A worker used {used:.1f} GiB of memory; it had requested {asked:g} GiB."
    most = job.pool.memory_gib
    if most is not None and wanted > most:
        return NoteAdvice(text, f"No machine here has {wanted} GiB. Keep less data in memory.")
    return NoteAdvice(
        text, "Request more: a worker above its memory is ended.", _option("memory_gib", wanted)
    )


def never_used(job: FinishedJob) -> NoteAdvice:
    """Return the advice for a job that used none of its GPUs."""
    return NoteAdvice(
        f"{_its_gpus(job)} ran almost no kernels: busy {_busy(job)}.",
        "Check on your bench that `torch.cuda.is_available()` is true, and move model and data "
        "to the GPU.",
    )


def idle_gpus(job: FinishedJob) -> NoteAdvice:
    """Return the advice for a job with some unused GPUs."""
    measured, spec = job.measured, job.spec
    idle = measured.gpus - measured.busy_gpus
    text = f"{idle} of its {measured.gpus} GPUs ran no kernel."
    if measured.busy_gpus_of_worker < spec.gpus:
        wanted = measured.busy_gpus_of_worker
        return NoteAdvice(
            text,
            f"Request {phrases.count(wanted, 'GPU')}{_each(job)}, or make the code use all GPUs.",
            _option("gpus", wanted),
        )
    wanted = measured.busy_workers
    return NoteAdvice(
        text,
        f"Request {phrases.count(wanted, 'worker')}, or make the code use all workers.",
        _option("workers", wanted),
    )


def lost_to_pauses(job: FinishedJob) -> NoteAdvice:
    """Return the advice for a job that lost much work to pauses."""
    measured = job.measured
    part = phrases.percent(measured.lost_s / measured.held_s)
    return NoteAdvice(
        f"Pauses for other jobs cost {part} of its GPU time: unsaved work and restarts.",
        "Save more often. If the job fits the guaranteed quota, you can also exclude it from "
        "pauses for other jobs.",
        FLAGS["preemptible"],
    )


def slow_start(job: FinishedJob) -> NoteAdvice:
    """Return the advice for a job with a long time before the first kernel."""
    return NoteAdvice(
        f"It held {_gpus(job)} for {_time(job.measured.before_s)} before the first kernel ran.",
        "Do its preparations once, before you send it: every start repeats them.",
    )


def long_tail(job: FinishedJob) -> NoteAdvice:
    """Return the advice for a job with a long time after the last kernel."""
    return NoteAdvice(
        f"It held {_gpus(job)} for {_time(job.measured.after_s)} after the last kernel.",
        "End it after its last step, and do work that needs no GPU on your bench.",
    )


def cpus_full(job: FinishedJob) -> NoteAdvice:
    """Return the advice for a job whose processors slow the GPUs down."""
    given, used = job.measured.cpus, job.used_cpus or 0.0
    text = (
        f"{_its_gpus(job)} {_were(job)} busy {_busy(job)}, and {used:.1f} of {_cpus(given)}"
        f"{_each(job)} in use."
    )
    most = job.pool.cpus
    wanted = ceil(2 * given) if most is None else min(ceil(2 * given), int(most))
    if wanted <= given:
        return NoteAdvice(
            text, "No machine here has more CPUs. Prepare the data before you send the job."
        )
    change = "Request more CPUs, and give the data loader one process for each."
    return NoteAdvice(text, change, _option("cpus", wanted))


def one_cpu(job: FinishedJob) -> NoteAdvice:
    """Return the advice for a job that uses one processor where it could use several."""
    given = job.measured.cpus
    which, several = (f"one of {_cpus(given)}", ceil(given) - 1) if given else ("one CPU", 4)
    return NoteAdvice(
        f"{_its_gpus(job)} {_were(job)} busy {_busy(job)}, while {which}{_each(job)} was in use.",
        f"Load data in more processes: `DataLoader(..., num_workers={several})`.",
    )


def reads_disks(job: FinishedJob) -> NoteAdvice:
    """Return the advice for a job whose disk reads slow the GPUs down."""
    return NoteAdvice(
        f"{_its_gpus(job)} {_were(job)} busy {_busy(job)}, and each worker read "
        f"{job.read_mb_s or 0.0:.0f} MB/s from disks.",
        "Keep the data in memory after the first pass over it, or in a smaller format.",
    )


def waits(job: FinishedJob) -> NoteAdvice:
    """Return the advice for a job with little use of GPUs, processors and disks."""
    return NoteAdvice(
        f"{_its_gpus(job)} {_were(job)} busy {_busy(job)}, and its CPUs and disks were almost "
        "idle: it waited for something else.",
        f"Check its log for what it waits for: `benchpool logs {job.short_id}`.",
    )


def over_the_network(job: FinishedJob) -> NoteAdvice:
    """Return the advice for a job whose workers were farther apart than necessary."""
    return NoteAdvice(
        f"Its {job.spec.workers} workers ran on {job.measured.nodes} machines, and its GPUs were "
        f"busy {_busy(job)}.",
        "Place all of them on one machine if possible.",
        _option("preferred_level", "node"),
    )


def stops_between(job: FinishedJob) -> NoteAdvice:
    """Return the advice for a job with long times without a kernel."""
    return NoteAdvice(
        f"Between its first and its last kernel {_gpus(job)} stood idle for "
        f"{_time(job.measured.between_s)} of {_time(job.measured.ran_s)}.",
        "If it saves or evaluates during this time, do so less often, or during the training.",
    )


def uneven(job: FinishedJob) -> NoteAdvice:
    """Return the advice for a job with GPUs of different activity."""
    measured = job.measured
    return NoteAdvice(
        f"One of its {measured.gpus} GPUs was busy {_percent(measured.most_activity)} of the time, "
        f"another {_percent(measured.least_activity)}.",
        "Give each of them an equal part of the data.",
    )


def small_kernels(job: FinishedJob) -> NoteAdvice:
    """Return the advice for a job with kernels that use a small part of a GPU."""
    return NoteAdvice(
        f"{_its_gpus(job)} {_were(job)} busy {_busy(job)}, but on {_percent(job.sm_activity)} of "
        "the multiprocessors.",
        "Use larger batches."
        if job.gpu_memory is None
        else f"Use larger batches: {_percent(1 - job.gpu_memory)} of the memory was never in use.",
    )


def large_gpu(job: FinishedJob) -> NoteAdvice:
    """Return the advice for a job that would have fitted on a smaller GPU."""
    model = smaller_model(job) or ""
    return NoteAdvice(
        f"It used {job.measured.gpu_memory_gib or 0.0:.1f} of "
        f"{job.measured.gpu_memory_total_gib or 0.0:.0f} GiB of its GPU's memory.",
        f"{model}, with {job.pool.models.get(model, 0.0):.0f} GiB, is large enough.",
        _option("gpu_models", model),
    )


def cpus_unused(job: FinishedJob) -> NoteAdvice:
    """Return the advice for a job with unused processors."""
    used, asked = job.used_cpus or 0.0, job.spec.cpus
    return NoteAdvice(
        f"Of {_cpus(asked)}{_each(job)} it used {used:.1f} on average.",
        "Request fewer, so that other jobs fit on the same machine.",
        _option("cpus", max(2, ceil(2 * used))),
    )


def memory_unused(job: FinishedJob) -> NoteAdvice:
    """Return the advice for a job with unused memory."""
    used, asked = job.measured.memory_gib or 0.0, job.spec.memory_gib
    return NoteAdvice(
        f"Of {asked:g} GiB of memory{_each(job)} it used {used:.1f} at most.",
        "Request less, so that other jobs fit on the same machine.",
        _option("memory_gib", max(2, ceil(2 * used))),
    )


def far_limit(job: FinishedJob) -> NoteAdvice:
    """Return the advice for a job that ended long before its time limit."""
    limit_s, ran_s = job.spec.time_limit_s or 0, job.measured.ran_s
    wanted = ceil(2 * ran_s / 600) * 10
    return NoteAdvice(
        f"It ran for {_time(ran_s)}; its time limit was {phrases.exactly(limit_s)}.",
        "A job with a shorter limit may start while GPUs are kept free for a larger job.",
        _option("time_limit_s", f"{wanted}m"),
    )


def smaller_model(job: FinishedJob) -> str | None:
    """Return the smallest sufficient GPU model of the pool, or None if it is not smaller."""
    used, had = job.measured.gpu_memory_gib, job.measured.gpu_memory_total_gib
    if used is None or had is None or not used:
        return None
    return _model(job, above=MORE * used, below=had)


def _model(job: FinishedJob, *, above: float | None, below: float = float("inf")) -> str | None:
    """Return the model with the least memory between two bounds, among those not requested."""
    if above is None:
        return None
    others = [it for it in job.pool.models if it not in job.spec.gpu_models]
    sized = [(job.pool.models[name], name) for name in others]
    fit = [it for it in sized if 1.05 * above < it[0] < 0.95 * below]
    return min(fit)[1] if fit else None


def _option(field: str, value: object) -> str:
    return f"{FLAGS[field]} {value}"


def _one(job: FinishedJob) -> bool:
    return job.measured.gpus == 1


def _gpus(job: FinishedJob) -> str:
    return "its GPU" if _one(job) else f"its {job.measured.gpus} GPUs"


def _its_gpus(job: FinishedJob) -> str:
    return "Its GPU" if _one(job) else f"Its {job.measured.gpus} GPUs"


def _were(job: FinishedJob) -> str:
    return "was" if _one(job) else "were"


def _busy(job: FinishedJob) -> str:
    return f"{phrases.share(job.measured.activity)} of the time"


def _each(job: FinishedJob) -> str:
    return " of each worker" if job.spec.workers > 1 else ""


def _cpus(number: float) -> str:
    return phrases.count(number, "CPU")


def _percent(part: float | None) -> str:
    return phrases.percent(part or 0.0)


def _time(seconds: float | None) -> str:
    return phrases.duration(seconds or 0.0)
