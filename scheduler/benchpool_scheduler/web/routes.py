"""Addresses of the pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tornado.routing import URLSpec

from benchpool_scheduler.api.identity import Identity
from benchpool_scheduler.contract.operation import PARTS
from benchpool_scheduler.service import Clock, Pool, SystemClock
from benchpool_scheduler.web.access_forms import VERBS, AccessHandler
from benchpool_scheduler.web.actions import FORMS, ActionHandler
from benchpool_scheduler.web.assets import AssetHandler
from benchpool_scheduler.web.audit_page import AuditHandler
from benchpool_scheduler.web.bench_forms import AskBackHandler
from benchpool_scheduler.web.compare_page import CompareHandler
from benchpool_scheduler.web.dashboard import DashboardHandler
from benchpool_scheduler.web.doubts import DECISIONS, DoubtHandler
from benchpool_scheduler.web.estimates_page import EstimatesHandler
from benchpool_scheduler.web.fleet_page import FleetHandler, KioskHandler
from benchpool_scheduler.web.growth_page import GrowthHandler
from benchpool_scheduler.web.health_page import HealthHandler
from benchpool_scheduler.web.history_page import HistoryHandler
from benchpool_scheduler.web.job_page import JobHandler
from benchpool_scheduler.web.jobs_page import JobsHandler
from benchpool_scheduler.web.machines_page import ACTS, MachineActHandler, MachinesHandler
from benchpool_scheduler.web.mine_page import MineHandler
from benchpool_scheduler.web.notifications_page import (
    NOTIFICATION_ACTS,
    NotificationActHandler,
    NotificationsHandler,
)
from benchpool_scheduler.web.pages import NoPageHandler, Site
from benchpool_scheduler.web.report_page import FILES, ReportFileHandler, ReportHandler
from benchpool_scheduler.web.runs_page import RunsHandler
from benchpool_scheduler.web.schedules_page import (
    SCHEDULE_ACTS,
    ScheduleActHandler,
    SchedulesHandler,
)
from benchpool_scheduler.web.services_page import (
    SERVICE_ACTS,
    ServiceActHandler,
    ServiceHandler,
    ServicesHandler,
)
from benchpool_scheduler.web.settings_pages import (
    PreviewHandler,
    RevertHandler,
    SettingsHandler,
)
from benchpool_scheduler.web.sweeps_page import StopSweepHandler, SweepHandler, SweepsHandler

STATIC = Path(__file__).parent / "static"


def routes(
    pool: Pool,
    identity: Identity,
    *,
    prefix: str = "/services/benchpool/",
    hub_prefix: str = "/hub/",
    clock: Clock | None = None,
) -> list[URLSpec]:
    """Return the rules of the dashboard, to be added after those of the API.

    Args:
        pool: The pool that the pages show and act on.
        identity: Authentication of readers; also provides XSRF token and login address.
        prefix: Path of the service; the API is at ``<prefix>api/v1/``.
        hub_prefix: Path of the Hub's own pages.
        clock: Clock for relative times.

    The last rule answers every other address below ``prefix`` with an error page.
    """
    site = Site(pool, identity, prefix, hub_prefix, clock or SystemClock())
    args = {"site": site}
    base = re.escape(prefix)
    return [
        URLSpec(
            f"{base}?" if prefix.endswith("/") and prefix != "/" else base, DashboardHandler, args
        ),
        URLSpec(f"{base}audit", AuditHandler, args),
        URLSpec(f"{base}jobs/?", JobsHandler, args),
        URLSpec(f"{base}access/(?P<request>{'|'.join(VERBS)})", AccessHandler, args),
        URLSpec(f"{base}benches/(?P<lease>[a-z0-9]{{26}})/ask-back", AskBackHandler, args),
        URLSpec(f"{base}compare", RunsHandler, args),
        URLSpec(f"{base}estimates", EstimatesHandler, args),
        URLSpec(f"{base}(people|quotas)", SettingsHandler, args),
        URLSpec(f"{base}(?P<name>people|quotas)/preview", PreviewHandler, args),
        URLSpec(f"{base}(?P<name>people|quotas)/revert", RevertHandler, args),
        URLSpec(f"{base}health", HealthHandler, args),
        URLSpec(f"{base}health/(?P<decision>{'|'.join(DECISIONS)})", DoubtHandler, args),
        URLSpec(f"{base}history(?P<kind>\\.csv)?", HistoryHandler, args),
        URLSpec(f"{base}fleet", FleetHandler, args),
        URLSpec(f"{base}kiosk", KioskHandler, args),
        URLSpec(f"{base}growth", GrowthHandler, args),
        URLSpec(f"{base}report", ReportHandler, args),
        URLSpec(f"{base}report\\.({'|'.join(FILES)})", ReportFileHandler, args),
        URLSpec(f"{base}mine", MineHandler, args),
        URLSpec(f"{base}notifications", NotificationsHandler, args),
        URLSpec(
            f"{base}notifications/(?P<act>{'|'.join(NOTIFICATION_ACTS)})",
            NotificationActHandler,
            args,
        ),
        URLSpec(f"{base}machines", MachinesHandler, args),
        URLSpec(f"{base}sweeps/?", SweepsHandler, args),
        URLSpec(f"{base}schedules/?", SchedulesHandler, args),
        URLSpec(f"{base}services/?", ServicesHandler, args),
        URLSpec(f"{base}static/(.*)", AssetHandler, {"path": str(STATIC)}),
        *_of_one(base, args),
        URLSpec(f"{base}.*", NoPageHandler, args),
    ]


def _of_one(base: str, args: dict[str, Any]) -> list[URLSpec]:
    """Return the rules of pages about one object: a job, a sweep, a schedule, a machine."""
    node = f"(?P<node>{PARTS['node']})"
    job = f"jobs/(?P<job>{PARTS['job']})"
    sweep = f"sweeps/(?P<sweep>{PARTS['sweep']})"
    schedule = f"schedules/(?P<schedule>{PARTS['schedule']})"
    service = f"services/(?P<service>{PARTS['service']})"
    return [
        URLSpec(f"{base}{service}", ServiceHandler, args),
        URLSpec(f"{base}{service}/(?P<act>{'|'.join(SERVICE_ACTS)})", ServiceActHandler, args),
        URLSpec(f"{base}{schedule}/(?P<act>{'|'.join(SCHEDULE_ACTS)})", ScheduleActHandler, args),
        URLSpec(f"{base}machines/{node}/(?P<act>{'|'.join(ACTS)})", MachineActHandler, args),
        URLSpec(f"{base}{sweep}", SweepHandler, args),
        URLSpec(f"{base}{sweep}/stop", StopSweepHandler, args),
        URLSpec(f"{base}{job}", JobHandler, args),
        URLSpec(f"{base}{job}/compare", CompareHandler, args),
        URLSpec(f"{base}{job}/(?P<verb>{'|'.join(FORMS)})", ActionHandler, args),
    ]
