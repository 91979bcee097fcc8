"""Read, run and print a replay (``benchpool replay``)."""

from __future__ import annotations

import csv
import json as codec
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from benchpool_scheduler.core.forecast.calibration import Calibration
from benchpool_scheduler.core.model import Policy
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.phrases import horizon_row
from benchpool_scheduler.simulation.replay import quotas, trace
from benchpool_scheduler.simulation.replay.baselines import Fifo, Static
from benchpool_scheduler.simulation.replay.engine import (
    Costs,
    Decider,
    Meter,
    ReplayClock,
    Run,
    play,
)
from benchpool_scheduler.simulation.replay.estimating import Estimating
from benchpool_scheduler.simulation.replay.guaranteed import Guaranteed
from benchpool_scheduler.simulation.replay.pools import ReplayPool
from benchpool_scheduler.simulation.replay.summary import Summary, summarise
from benchpool_scheduler.simulation.replay.trace import Selection, TraceJob

POLICIES = ("guaranteed", "static", "fifo")

Echo = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """Options of ``benchpool replay`` (formats, section 2).

    Attributes:
        gpus: Size of a pool without nodes; else ``nodes`` with ``gpus_per_node`` each.
        quotas: A CSV file of quotas; overrides ``quota_rule``.
        window: ``A:B`` in days.
        estimates: Whether starts of waiting jobs are estimated.
        judged_from: A day of the trace; earlier estimates only train the calibration.
    """

    trace: Path
    gpus: int | None = None
    nodes: int | None = None
    gpus_per_node: int | None = None
    policy: str = "guaranteed"
    quotas: Path | None = None
    quota_rule: str = "p98-scaled"
    window: str | None = None
    min_jobs: int = 0
    load: float = 1.0
    restart_s: float = 60.0
    lost_progress_s: float = 0.0
    seed: int = 0
    sample: float = 1.0
    jobs_out: Path | None = None
    estimates: bool = False
    judged_from: float | None = None
    json: bool = False


def run(options: ReplayOptions, echo: Echo = print) -> int:
    """Replay a trace and print the summary.

    Returns:
        0.

    Raises:
        InvalidInput: An option, the trace or the quotas are invalid.
    """
    calibration = Calibration(newest=None) if options.estimates else None
    summary, runs = replay(options, calibration=calibration)
    if options.jobs_out is not None:
        write_jobs(options.jobs_out, runs)
    if options.json:
        extra = {} if calibration is None else {"start_estimates": estimates_data(calibration)}
        echo(codec.dumps(rounded(summary) | extra))
        return 0
    for line in table(summary):
        echo(line)
    if calibration is not None:
        for line in estimates_table(calibration):
            echo(line)
    return 0


def replay(
    options: ReplayOptions, policy: Policy | None = None, calibration: Calibration | None = None
) -> tuple[Summary, list[Run]]:
    """Replay a trace; return the figures and every job's run, by submission.

    Args:
        policy: The settings of ``guaranteed``, for comparisons; by default those of a new pool.
        calibration: Records the accuracy of start estimates; None makes no estimates.

    Raises:
        InvalidInput: An option, the trace or the quotas are invalid.
    """
    begin = time.perf_counter()
    given = prepared(options)
    jobs, pool = given.jobs, given.pool
    runs = [Run.of(index, job, pool.workers_of(job)) for index, job in enumerate(jobs)]
    meter = Meter(*(given.window_s or (jobs[0].submit_s, None)))
    clock = ReplayClock(Costs(options.restart_s, options.lost_progress_s), meter)
    play(runs, _decider(options, given, runs, policy or Policy(), calibration), clock)
    span_s = given.window_s or (jobs[0].submit_s, max(run.end_s for run in runs))
    wall_s = time.perf_counter() - begin
    figures = summarise(
        runs, clock, gpus=pool.gpus, policy=options.policy, span_s=span_s, wall_s=wall_s
    )
    return figures, runs


@dataclass(frozen=True, slots=True)
class Prepared:
    """Input of a replay: the selected jobs, the pool, its quotas and the measured time span.

    Attributes:
        window_s: None without a window: from the first submission to the last end.
    """

    jobs: Sequence[TraceJob]
    pool: ReplayPool
    quotas: quotas.Quotas
    window_s: tuple[float, float] | None


def prepared(options: ReplayOptions) -> Prepared:
    """Read and select the input of a replay.

    Raises:
        InvalidInput: An option, the trace or the quotas are invalid.
    """
    pool, selection = _pool(options), _selection(options)
    jobs = selection.of(trace.read(options.trace))
    window_s = selection.window_s
    return Prepared(jobs, pool, _quotas(options, jobs, pool.gpus, window_s), window_s)


def _decider(
    options: ReplayOptions,
    given: Prepared,
    runs: Sequence[Run],
    policy: Policy,
    calibration: Calibration | None,
) -> Decider:
    if calibration is not None and options.policy != "guaranteed":
        raise InvalidInput(
            f"estimates of starts need the policy guaranteed, not {options.policy}; omit "
            "--estimates or --policy",
            field="estimates",
        )
    if options.judged_from is not None and calibration is None:
        raise InvalidInput(
            "--judged-from selects estimates, but there are none; add --estimates",
            field="judged_from",
        )
    if options.policy == "fifo":
        return Fifo(given.pool)
    if options.policy == "static":
        return Static(given.pool, given.quotas, runs)
    policy = replace(policy, restart_s=options.restart_s)
    if calibration is not None:
        judged_from_s = (options.judged_from or 0.0) * trace.DAY_S / options.load
        return Estimating(given.pool, given.quotas, policy, calibration, judged_from_s)
    return Guaranteed(given.pool, given.quotas, policy)


def _quotas(
    options: ReplayOptions,
    jobs: Sequence[TraceJob],
    gpus: int,
    window_s: tuple[float, float] | None,
) -> quotas.Quotas:
    if options.quotas is not None:
        return quotas.from_file(options.quotas, jobs)
    return quotas.by_rule(options.quota_rule, jobs, gpus, window_s)


def _pool(options: ReplayOptions) -> ReplayPool:
    on_nodes = (options.nodes, options.gpus_per_node)
    if options.gpus is not None and on_nodes == (None, None):
        return ReplayPool(1, options.gpus)
    if options.gpus is None and options.nodes is not None and options.gpus_per_node is not None:
        return ReplayPool(options.nodes, options.gpus_per_node)
    raise InvalidInput(
        "give the size of the pool: --gpus N, or --nodes K with --gpus-per-node G", field="gpus"
    )


def _selection(options: ReplayOptions) -> Selection:
    return Selection(
        window=None if options.window is None else _window(options.window),
        min_jobs=options.min_jobs,
        load=options.load,
        sample=options.sample,
        seed=options.seed,
    )


def _window(text: str) -> tuple[float, float]:
    """Return the days of ``A:B``.

    >>> _window("21:98")
    (21.0, 98.0)
    """
    first, _, last = text.partition(":")
    try:
        days = float(first), float(last)
    except ValueError:
        days = 0.0, 0.0
    if not 0 <= days[0] < days[1] < float("inf"):
        raise InvalidInput(
            f"--window must be two days A:B with A before B, such as 21:98; it is {text!r}",
            field="window",
        )
    return days


# --------------------------------------------------------------------------- printing


def rounded(summary: Summary) -> dict[str, object]:
    """Return the summary by its keys, with figures rounded to six places."""
    return {
        key: round(value, 6) if isinstance(value, float) else value
        for key, value in asdict(summary).items()
    }


def table(summary: Summary) -> Iterator[str]:
    """Yield the summary as text, one key and figure per line."""
    values = rounded(summary)
    width = max(map(len, values))
    for key, value in values.items():
        yield f"{key:<{width}}  {f'{value:.4g}' if isinstance(value, float) else value}"


def estimates_data(calibration: Calibration) -> list[dict[str, object]]:
    """Return the accuracy of start estimates by horizon, as data; null is an open end."""
    return [
        {
            "up_to_s": None if it.up_to_s == float("inf") else it.up_to_s,
            "starts": it.starts,
            "inside": it.inside,
            "before": it.before,
            "after": it.after,
        }
        for it in calibration.rows()
    ]


def estimates_table(calibration: Calibration) -> Iterator[str]:
    """Yield the accuracy of start estimates as text, one horizon per line."""
    yield ""
    yield "start seemed away  estimates  in the range  earlier  later"
    for row in calibration.rows():
        cells = horizon_row(row.up_to_s, row.starts, row.inside, row.before, row.after)
        away, starts, inside, before, after = cells
        yield f"{away:<18} {starts:>9} {inside:>13} {before:>8} {after:>6}"


def write_jobs(path: Path, runs: Sequence[Run]) -> None:
    """Write one row per job, by submission, with times in seconds of the replay.

    Raises:
        InvalidInput: The file cannot be written.
    """
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(JOB_COLUMNS)
            for one in runs:
                writer.writerow(_row(one))
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error}; name another file") from error


JOB_COLUMNS = (
    "line", "project", "user", "gpus", "duration_s", "submit_s", "first_start_s", "end_s", "wait_s",
    "preemptions", "lost_gpu_s",
)  # fmt: skip


def _row(one: Run) -> list[object]:
    job = one.job
    times = (job.duration_s, job.submit_s, one.first_start_s, one.end_s, one.wait_s)
    return [
        job.line,
        job.project,
        job.user or "",
        job.gpus,
        *(round(value, 3) for value in times if value is not None),
        one.preemptions,
        round(one.lost_gpu_s, 3),
    ]
