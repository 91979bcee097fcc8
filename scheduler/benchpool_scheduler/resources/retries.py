"""Retries in the status of a ``TrainingJob``, and the site's rules for retries and hanging jobs."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta, Struct

from benchpool_scheduler.contract.causes import MOST_RETRIES, EndCause
from benchpool_scheduler.contract.hanging import IfHanging
from benchpool_scheduler.core.lifecycle.hangs import LEAST_S, MOST_S
from benchpool_scheduler.core.lifecycle.retries import FAILURES, MOST_WAIT_S
from benchpool_scheduler.resources.declaring import Code, NodeName


class FailureStatus(Struct, frozen=True, omit_defaults=True):
    """Details of a worker's failure beyond its exit code."""

    cause: EndCause | None = None
    traceback: Code | None = None
    xid: Annotated[int, Meta(ge=0)] | None = None


class RetryStatus(
    Struct,
    frozen=True,
    omit_defaults=True,
    rename={"pause_s": "pauseSeconds", "avoid_s": "avoidSeconds", "exit_code": "exitCode"},
):
    """Failure after which the job was retried."""

    attempt: Annotated[int, Meta(ge=1)]
    cause: EndCause
    at: datetime
    node: NodeName
    pause_s: float = 0.0
    avoid_s: float = 0.0
    xid: Annotated[int, Meta(ge=0)] | None = None
    exit_code: int | None = None
    traceback: Code | None = None
    step: Annotated[int, Meta(ge=0)] | None = None
    saved: bool = False


Wait = Annotated[float, Meta(ge=0, le=MOST_WAIT_S)]


class RetryRuleSpec(
    Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"
):
    """Retry rule for one cause of failure."""

    times: Annotated[
        Annotated[int, Meta(ge=0, le=MOST_RETRIES)] | None,
        Meta(description="Maximum number of retries; 0 disables retries."),
    ] = None
    pause_s: Annotated[
        Wait | None, Meta(description="Delay before the next attempt, in seconds.")
    ] = None
    avoid_s: Annotated[
        Wait | None,
        Meta(
            description="Time for which the job avoids the node, if there are others, in seconds."
        ),
    ] = None


if TYPE_CHECKING:

    class RetryRulesSpec(Struct, frozen=True):
        """Retry rules, by cause of failure."""
else:
    RetryRulesSpec = msgspec.defstruct(
        "RetryRulesSpec",
        [(cause.replace("-", "_"), RetryRuleSpec | None, None) for cause in FAILURES],
        namespace={"__doc__": "Rules for retries of jobs after failures, by cause."},
        rename="camel",
        frozen=True,
        forbid_unknown_fields=True,
        omit_defaults=True,
    )


class HangRuleSpec(
    Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """Rule for hanging jobs: when a running job counts as hanging, and the action."""

    after_s: Annotated[
        Annotated[float, Meta(ge=LEAST_S, le=MOST_S)] | None,
        Meta(
            description="Silence after which a job counts as hanging, in seconds; without it only "
            "jobs that request it are watched."
        ),
    ] = None
    act: Annotated[
        IfHanging | None,
        Meta(description="Action for jobs without their own: `tell`, `requeue` or `nothing`."),
    ] = None
