"""The projects: what each one holds against its guaranteed quota and its fair share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchpool_scheduler.contract import ProjectQuota
from benchpool_scheduler.phrases import count


@dataclass(frozen=True, slots=True)
class ProjectRow:
    """One project; the bar's parts are percentages of the scale all bars share.

    ``quota_mark`` and ``share_mark`` are None where there is nothing to mark.
    """

    name: str
    allocated: int
    quota: str
    fair_share: int
    limit: str
    waiting: int
    within: float
    over: float
    quota_mark: float | None
    share_mark: float | None
    summary: str


@dataclass(frozen=True, slots=True)
class ProjectsView:
    """All projects on one scale from 0 to ``scale`` GPUs."""

    rows: tuple[ProjectRow, ...]
    scale: int


def projects_view(projects: Sequence[ProjectQuota]) -> ProjectsView:
    """Return a bar per project, all on one zero-based scale."""
    scale = max((_widest(project) for project in projects), default=0) or 1
    return ProjectsView(tuple(_row(project, scale) for project in projects), scale)


def _widest(project: ProjectQuota) -> int:
    return max(project.quota or 0, project.fair_share, project.allocated)


def _row(project: ProjectQuota, scale: int) -> ProjectRow:
    quota = project.allocated if project.quota is None else project.quota
    within = min(project.allocated, quota)
    over = project.allocated - within
    return ProjectRow(
        name=project.name,
        allocated=project.allocated,
        quota="no bound" if project.quota is None else str(project.quota),
        fair_share=project.fair_share,
        limit="none" if project.limit is None else str(project.limit),
        waiting=project.waiting,
        within=_part(within, scale),
        over=_part(over, scale),
        quota_mark=_part(project.quota, scale) if project.quota else None,
        share_mark=_part(project.fair_share, scale) if project.fair_share else None,
        summary=_summary(project, over),
    )


def _summary(project: ProjectQuota, over: int) -> str:
    guaranteed = "no bound on its quota"
    if project.quota is not None:
        guaranteed = f"{project.quota} guaranteed"
    surplus = f", {over} of them over quota" if over else ""
    return (
        f"{count(project.allocated, 'GPU')} allocated{surplus}; "
        f"{guaranteed}, fair share {project.fair_share}"
    )


def _part(value: int, scale: int) -> float:
    return round(100 * value / scale, 2)
