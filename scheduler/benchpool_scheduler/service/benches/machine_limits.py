"""Refusal of bench requests that no node could ever serve, whatever is in use now."""

from __future__ import annotations

from benchpool_scheduler import phrases
from benchpool_scheduler.configuration.nodes import nearest
from benchpool_scheduler.contract import LeaseRequest
from benchpool_scheduler.errors import Refused
from benchpool_scheduler.service.benches.line import accepts
from benchpool_scheduler.service.observed.inventory import Inventory


def check_gpus(request: LeaseRequest, inventory: Inventory) -> None:
    """Refuse a kind or a number of GPUs that no node for benches has.

    Errors: Refused ``no-such-model`` or ``larger-than-node``.
    """
    machines = [inventory.nodes.get(name, ()) for name in inventory.build]
    if not any(machines):
        return  # no node is known yet
    most = max(sum(accepts(request, it) for it in devices) for devices in machines)
    if most >= request.gpus:
        return
    models = " or ".join(request.gpu_models)
    if most:
        raise Refused(
            f"{phrases.count(request.gpus, 'GPU')}{f' of model {models}' if models else ''} for "
            f"this server are more than any machine for benches has: {most} at most. "
            "Request fewer.",
            code="larger-than-node",
            field="gpus",
            numbers={"asked": request.gpus, "most": most},
        )
    kind = f"of model {models}" if models else f"of the kind {request.resource}"
    known = {it.model if models else it.resource for devices in machines for it in devices}
    raise Refused(
        f"No machine for benches has a GPU {kind}"
        f"{nearest(request.gpu_models[0] if models else str(request.resource), known)} "
        "Choose another.",
        code="no-such-model",
        field="gpu_models" if models else "resource",
        numbers={"known": len(known)},
    )
