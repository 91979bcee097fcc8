"""``benchpool whatif --trace``: replays a recorded workload in two pools, without a service."""

from __future__ import annotations

from dataclasses import replace

from benchpool_scheduler.cli.verb import Options
from benchpool_scheduler.configuration import load
from benchpool_scheduler.contract import WorkloadWhatIf
from benchpool_scheduler.core.model import Node, Policy, Project, ProjectName, Snapshot
from benchpool_scheduler.core.whatif.expansion import with_nodes
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.service.administration import workloads
from benchpool_scheduler.simulation.replay import report
from benchpool_scheduler.simulation.replay.engine import Costs
from benchpool_scheduler.simulation.replay.pools import ReplayPool
from benchpool_scheduler.simulation.whatif import Side, replay_both

FROM_REPLAY = (
    *("gpus", "nodes", "quotas", "quota_rule", "window", "min_jobs", "load", "restart_s"),
    *("lost_progress_s", "seed", "sample"),
)


def replayed(options: Options, declared: str | None) -> WorkloadWhatIf:
    """Replay a trace before and after a change.

    Before: the pool and the quotas that ``benchpool replay`` would use. After: the projects and the
    policy of ``--config``, if given, and the GPUs of ``--more-gpus`` added.

    Args:
        options: Options of the verb.
        declared: Text of the file named by ``--config``.

    Errors: InvalidInput.
    """
    if declared is None and not options["more_gpus"]:
        raise InvalidInput(
            "Nothing to compare. Pass --config, --more-gpus or both.",
            field="config",
        )
    if options["history"] is not None:
        raise InvalidInput(
            "--trace and --history both name a workload. Pass one of them.", field="history"
        )
    given = report.ReplayOptions(
        options["trace"],
        gpus_per_node=options["gpus_per_node"] if options["nodes"] is not None else None,
        **{name: options[name] for name in FROM_REPLAY},
    )
    found = report.prepared(given)
    before = Side(found.pool.as_nodes(), _projects(found), Policy(restart_s=given.restart_s))
    costs = Costs(given.restart_s, given.lost_progress_s)
    after = _after(options, declared, found.pool, before)
    return workloads.answer(replay_both(found.jobs, before, after, costs, found.window_s))


def _projects(found: report.Prepared) -> tuple[Project, ...]:
    return tuple(Project(ProjectName(name), quota=gpus) for name, gpus in found.quotas.items())


def _after(options: Options, declared: str | None, pool: ReplayPool, before: Side) -> Side:
    after = replace(before, nodes=_grown(pool, options["more_gpus"]))
    if declared is None:
        return after
    configuration = load(declared, str(options["config"]))
    projects = tuple(settings.project for settings in configuration.projects)
    # A trace has no dates: its time zero is that of the clock, where a month begins in UTC.
    hours = configuration.hour_budgets
    return replace(after, projects=projects, policy=configuration.policy, hours=hours)


def _grown(pool: ReplayPool, more: int) -> tuple[Node, ...]:
    """Return the nodes with ``more`` GPUs added. A pool of one node stays one node."""
    if pool.nodes == 1:
        return ReplayPool(1, pool.gpus_per_node + more).as_nodes()
    return with_nodes(Snapshot(pool.as_nodes(), (), ()), more, per_node=pool.gpus_per_node).nodes
