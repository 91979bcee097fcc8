"""Which address shows which page."""

from __future__ import annotations

import re
from pathlib import Path

from tornado.routing import URLSpec

from benchpool_scheduler.api.identity import Identity
from benchpool_scheduler.service import Clock, Pool, SystemClock
from benchpool_scheduler.web.actions import FORMS, ActionHandler
from benchpool_scheduler.web.assets import AssetHandler
from benchpool_scheduler.web.audit_page import AuditHandler
from benchpool_scheduler.web.dashboard import DashboardHandler
from benchpool_scheduler.web.job_page import JobHandler
from benchpool_scheduler.web.pages import NoPageHandler, Site

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
        pool: What the pages show and act on.
        identity: Who reads; also gives the XSRF token and the way to the login.
        prefix: Where the service lies; the API is at ``<prefix>api/v1/``.
        hub_prefix: Where the Hub's own pages lie.
        clock: Where relative times come from.

    The last rule answers every other address below ``prefix`` with a page that says so.
    """
    site = Site(pool, identity, prefix, hub_prefix, clock or SystemClock())
    args = {"site": site}
    base = re.escape(prefix)
    job = r"jobs/(?P<job>[a-z0-9]{4,26})"
    return [
        URLSpec(
            f"{base}?" if prefix.endswith("/") and prefix != "/" else base, DashboardHandler, args
        ),
        URLSpec(f"{base}audit", AuditHandler, args),
        URLSpec(f"{base}static/(.*)", AssetHandler, {"path": str(STATIC)}),
        URLSpec(f"{base}{job}", JobHandler, args),
        URLSpec(f"{base}{job}/(?P<verb>{'|'.join(FORMS)})", ActionHandler, args),
        URLSpec(f"{base}.*", NoPageHandler, args),
    ]
