"""Bench and its idle time in the form of the API."""

from __future__ import annotations

from benchpool_scheduler.contract.idle_benches import (
    BenchAct,
    BenchCommand,
    BenchIdleness,
    BenchStep,
)
from benchpool_scheduler.core.benches.giving_back import HUB_STOPS, Giving
from benchpool_scheduler.core.benches.idle import RESTING, IdleStep
from benchpool_scheduler.service.benches.idle.watcher import IdleWatcher, WatchedBench
from benchpool_scheduler.service.process.clock import moment

COMMANDS = {
    Giving.RELEASING: BenchCommand.RELEASE,
    Giving.NOTING: BenchCommand.NOTE,
}


def idleness(
    watcher: IdleWatcher, bench: WatchedBench, act: BenchAct, *, parks: bool
) -> BenchIdleness:
    """Return the idle state of a bench.

    Args:
        act: The action when the bench is due, by the rule or at its owner's request.
        parks: Whether the rule tries to park it first.
    """
    rule, now, watch = watcher.rule, watcher.now(), bench.watch
    rests = watch.step in RESTING
    # Where the rule takes no action, no bench is on a step of the ladder.
    step = IdleStep.IDLE if rests and not rule.act else watch.step
    coming = {
        IdleStep.IDLE: (BenchStep.TOLD, rule.tell_s),
        IdleStep.TOLD: (BenchStep.ASKED, rule.ask_s),
        IdleStep.ASKED: (BenchStep.DUE, rule.act_s),
    }
    next_, after_s = coming.get(step, (None, 0.0)) if rule.act else (None, 0.0)
    exempt = watcher.exempt_until(bench.lease)
    return BenchIdleness(
        lease=bench.lease.id,
        user=bench.lease.user,
        server=bench.lease.server,
        gpus=list(bench.lease.gpus),
        step=BenchStep(step.value),
        idle_s=watch.idle_s,
        coverage=min(1.0, watch.known_s / watch.idle_s) if watch.idle_s > 0 else 0.0,
        kept_until=moment(bench.kept_until) if bench.kept_until > now else None,
        keeps_left=watcher.keeps_left(bench),
        keep_s=rule.keep_s,
        exempt_until=None if exempt is None else moment(exempt),
        tell_s=rule.tell_s,
        ask_s=rule.ask_s,
        act_s=rule.act_s,
        act=act if rule.act or bench.giving is not Giving.NONE else BenchAct.NONE,
        acts_at=moment(watch.since + rule.act_s) if rests and rule.act else None,
        next=next_,
        next_at=None if next_ is None else moment(watch.since + after_s),
        command=COMMANDS.get(bench.giving, BenchCommand.NONE),
        asked=bench.asked,
        parks=parks and rule.act,
        stopping=bench.giving in HUB_STOPS,
    )
