"""API routes for health, metrics and the API description."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from benchpool_scheduler.api.metrics import CONTENT_TYPE, Traffic
from benchpool_scheduler.api.routing import Answer, Handle, Request
from benchpool_scheduler.contract import Liveness
from benchpool_scheduler.contract.operation import Operation
from benchpool_scheduler.contract.operations import Operations


async def health(request: Request, start: str | None) -> Answer:
    """Return that the service is alive, and the ID of its start."""
    return Answer(Liveness(ok=True, start=start))


async def describe(request: Request, document: bytes) -> Answer:
    """Return the OpenAPI document."""
    return Answer(msgspec.Raw(document))


async def figures(request: Request, traffic: Traffic) -> Answer:
    """Return all metrics in Prometheus' format."""
    return Answer(traffic.text(request.pool), headers={"Content-Type": CONTENT_TYPE})


def handlers(
    traffic: Traffic, document: bytes, start: str | None
) -> Mapping[Operation[Any], Handle]:
    """Return the handlers of these operations.

    ``document`` is the description of the API, and ``start`` as in Liveness.
    """
    return {
        Operations.health: partial(health, start=start),
        Operations.openapi: partial(describe, document=document),
        Operations.metrics: partial(figures, traffic=traffic),
    }
