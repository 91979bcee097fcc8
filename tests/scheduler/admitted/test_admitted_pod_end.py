"""End of an admitted pod, and the handling of pods that do not start."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from benchpool_scheduler.runtime import EndedBy
from benchpool_scheduler.runtime.kubernetes.admitted import pod_ends
from benchpool_scheduler.runtime.kubernetes.cluster_settings import ClusterSettings
from benchpool_scheduler.runtime.kubernetes.cluster_views import PodView
from benchpool_scheduler.runtime.kubernetes.pod_status import WorkerEnd
from benchpool_scheduler.runtime.kubernetes.raw_objects import ContainerTerminated
from benchpool_support.admitted import pod

SETTINGS = ClusterSettings("work", "job", "agent", "http://agent")
RUNNING = replace(pod("a", gated=False).view, node="n0", phase="Running", running=True)


def end(view: PodView, *, gone: bool = False, asked: bool = False) -> WorkerEnd | None:
    """Return how the pod ended, or None."""
    return pod_ends.end_of(view, gone=gone, asked=asked, given_back=None)


def over(phase: str, **more: Any) -> PodView:
    """Return a pod in its final phase."""
    return replace(RUNNING, phase=phase, running=False, **more)


def test_running_pod_has_not_ended() -> None:
    assert end(RUNNING) is None


def test_pod_end_follows_phase_and_exit_code() -> None:
    done = end(over("Succeeded"))
    assert done is not None
    assert (done.by, done.exit_code) == (EndedBy.ITSELF, 0)
    failed = end(over("Failed", ended=ContainerTerminated(exit_code=3)))
    assert failed is not None
    assert (failed.by, failed.exit_code) == (EndedBy.ITSELF, 3)
    never = end(over("Failed", reason="UnexpectedAdmissionError", message="no GPU"))
    assert never == WorkerEnd(
        None, EndedBy.COULD_NOT_START, "its pod failed (UnexpectedAdmissionError): no GPU"
    )


def test_deleted_pod_is_lost_or_stopped_by_notice() -> None:
    lost = end(RUNNING, gone=True)
    assert lost is not None
    assert (lost.by, lost.text) == (EndedBy.LOST, "its pod was deleted")
    ended = end(RUNNING, gone=True, asked=True)
    assert ended is not None
    assert ended.by is EndedBy.NOTICE


def test_unschedulable_pod_is_released_only_with_owner() -> None:
    stuck = replace(RUNNING, node="", running=False, phase="Pending", unschedulable="no cpu")
    assert pod_ends.trouble_of(stuck, SETTINGS, "n0", None) is None
    trouble = pod_ends.trouble_of(replace(stuck, owned=True), SETTINGS, "n0", None)
    assert trouble is not None
    assert trouble.text == "n0 cannot run it: no cpu"
