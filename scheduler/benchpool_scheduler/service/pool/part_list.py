"""List of the pool's background tasks, with their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchpool_scheduler.service.housekeeping.reservation_edges import ReservationEdges
from benchpool_scheduler.service.jobs.deadline_watch import DeadlineWatch
from benchpool_scheduler.service.pool.background_tasks import BackgroundTasks
from benchpool_scheduler.service.pool.job_history_loader import JobHistoryLoader

if TYPE_CHECKING:
    from benchpool_scheduler.service.pool.pool import Pool


def begin_parts(pool: Pool, parts: BackgroundTasks, older: JobHistoryLoader) -> None:
    """Start all background tasks in this order."""
    begin = parts.begin
    begin("worker-events", pool.watcher.listen())
    begin("event-handler", pool.watcher.run())
    begin("scheduling-passes", pool.passes.run())
    begin("housekeeping", pool.housekeeping.run())
    begin("maintenance-windows", pool.nodes.run())
    begin("gpu-use-recorder", pool.use.run())
    begin("start-estimates", pool.estimates.run())
    begin("idle-benches", pool.idle.run())
    begin("curve-writer", pool.curves.run())
    begin("sweeps", pool.sweeps.runner.run())
    begin("hang-detection", pool.inside.hangs.run())
    edges = ReservationEdges(pool.observed, pool.want_pass)
    begin("reservations", edges.run())
    late = DeadlineWatch(pool.ledger, pool.observed, pool.estimates)
    begin("deadlines", late.run())
    begin("schedules", pool.schedules.runner.run())
    begin("services", pool.services.runner.run())
    begin("admitted-pods", pool.admitted.run(), may_return=True)
    begin("gpu-metering", pool.metering.run(), may_return=True)
    begin("job-history", older.read(), may_return=True)
    begin("bench-parking", pool.reservations.parking.run(), may_return=True)
    begin("inbound-jobs", pool.inbound.run(), may_return=True)
    begin("reason-announcer", pool.announcer.run(), may_return=True)
    begin("notification-delivery", pool.deliveries.run(), may_return=True)
