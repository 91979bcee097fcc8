"""Health, figures, and the description of the API itself."""

from __future__ import annotations

import msgspec

from benchpool_scheduler.api.metrics import CONTENT_TYPE, Traffic
from benchpool_scheduler.api.routing import Answer, Request
from benchpool_scheduler.contract import Liveness


async def health(request: Request) -> Answer:
    """Answer that the service answers; nothing else is told to strangers."""
    return Answer(Liveness(ok=True))


async def describe(request: Request, document: bytes) -> Answer:
    """Answer the OpenAPI document."""
    return Answer(msgspec.Raw(document))


async def figures(request: Request, traffic: Traffic) -> Answer:
    """Answer all figures in Prometheus' format."""
    return Answer(traffic.text(request.pool), headers={"Content-Type": CONTENT_TYPE})
