"""What the Job of an attempt tells of its gang, where the cluster schedules workloads itself.

Since 1.36 Kubernetes knows gangs (``Workload``, ``PodGroup``) and the Job controller makes such
objects. benchpool decides who starts where, so nothing is told by default (docs/decisions/0107).
"""

from __future__ import annotations

from typing import Any, Protocol

Manifest = dict[str, Any]


class WorkloadHints(Protocol):
    """The port: what is added to the spec of the Job of an attempt."""

    def job_fields(self, workers: int) -> Manifest:
        """Return fields of a Job's ``spec`` for a gang of so many workers."""
        ...


class NoHints:
    """Nothing: the Job controller then makes a group with the policy ``basic``, if any."""

    def job_fields(self, workers: int) -> Manifest:
        """Return nothing.

        >>> NoHints().job_fields(2)
        {}
        """
        return {}


class GangHints:
    """``spec.scheduling`` as KEP-5547 has it: bound together, and pushed out together.

    For clusters from 1.37 on with the gate ``WorkloadWithJob``; others drop the field unread.
    """

    def job_fields(self, workers: int) -> Manifest:
        """Return the gang; a single worker is none.

        >>> GangHints().job_fields(2)["scheduling"]["schedulingPolicy"]
        {'gang': {'minCount': 2}}
        >>> GangHints().job_fields(1)
        {}
        """
        if workers < 2:
            return {}
        return {
            "scheduling": {
                "schedulingPolicy": {"gang": {"minCount": workers}},
                "disruptionMode": {"all": {}},
            }
        }
