"""The projects: held GPUs of each against its guaranteed quota and its fair share."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import takewhile
from urllib.parse import quote, urlencode

from benchpool_scheduler.contract import ProjectQuota, as_tree
from benchpool_scheduler.phrases import count

MANY = 20
"""Number of projects below a project beyond which it is collapsed by default."""


@dataclass(frozen=True, slots=True)
class ProjectRow:
    """One project; ``below`` is the number of projects under it, hidden while it is ``folded``.

    ``toggle`` is the address that folds or unfolds it, ``address`` the page positioned at it. The
    bar's parts are percentages of the scale of all bars; ``quota_mark`` and ``share_mark`` are None
    if there is no mark.
    """

    name: str
    allocated: int
    quota: str
    fair_share: int
    limit: str
    waiting: int
    reclaimed_gpus: str
    gpu_hours: str
    reserved: Sequence[str]
    depth: int
    below: int
    folded: bool
    toggle: str
    address: str
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


def projects_view(
    projects: Sequence[ProjectQuota], toggled: Collection[str] = (), at: str = ""
) -> ProjectsView:
    """Return a bar per project on a common scale from zero, each below its parent.

    Args:
        toggled: Projects whose default is reversed; by default more than ``MANY`` below fold.
        at: The project to show: its ancestors are unfolded.
    """
    scale = max((_widest(project) for project in projects), default=0) or 1
    tree, rows = as_tree(projects), list[ProjectRow]()
    above = _above(at, projects)
    hidden_below: int | None = None
    for place, (depth, project) in enumerate(tree, start=1):
        if hidden_below is not None and depth > hidden_below:
            continue
        below = sum(1 for _ in takewhile(lambda each: each[0] > depth, tree[place:]))  # noqa: B023
        folded = below > 0 and (project.name in toggled) != (below > MANY)
        folded = folded and project.name not in above
        hidden_below = depth if folded else None
        rows.append(_row(project, scale, depth, below, folded, toggled))
    return ProjectsView(tuple(rows), scale)


def _above(name: str, projects: Sequence[ProjectQuota]) -> frozenset[str]:
    parents = {one.name: one.parent for one in projects}
    found, parent = set[str](), parents.get(name)
    while parent is not None and parent not in found:
        found.add(parent)
        parent = parents.get(parent)
    return frozenset(found)


def _widest(project: ProjectQuota) -> int:
    return max(_guaranteed(project) or 0, project.fair_share, project.allocated)


def _guaranteed(project: ProjectQuota) -> int | None:
    """Return its guarantee, with its part of its parent's; None without a limit."""
    if project.quota is None:
        return None
    return max(project.quota, project.guaranteed or 0)


def _row(
    project: ProjectQuota,
    scale: int,
    depth: int,
    below: int,
    folded: bool,
    toggled: Collection[str],
) -> ProjectRow:
    guaranteed = _guaranteed(project)
    within = project.allocated if guaranteed is None else min(project.allocated, guaranteed)
    over = project.allocated - within
    return ProjectRow(
        name=project.name,
        allocated=project.allocated,
        quota="unlimited" if project.quota is None else str(project.quota),
        fair_share=project.fair_share,
        limit="none" if project.limit is None else str(project.limit),
        waiting=project.waiting,
        reclaimed_gpus=_reclaimed_gpus(project),
        gpu_hours="" if project.gpu_hours is None else project.gpu_hours.text,
        reserved=[it.text for it in project.reserved],
        depth=depth,
        below=below,
        folded=folded,
        toggle="?" + urlencode([("fold", name) for name in sorted({*toggled} ^ {project.name})]),
        address="?" + urlencode({"at": project.name}) + "#project-" + quote(project.name, safe=""),
        within=_part(within, scale),
        over=_part(over, scale),
        quota_mark=_part(guaranteed, scale) if guaranteed else None,
        share_mark=_part(project.fair_share, scale) if project.fair_share else None,
        summary=_summary(project, over),
    )


def _summary(project: ProjectQuota, over: int) -> str:
    guaranteed = "unlimited quota"
    if project.quota is not None:
        guaranteed = f"{project.quota} guaranteed"
        if above := (_guaranteed(project) or 0) - project.quota:
            guaranteed += f", plus {above} of the guarantee of {project.parent}"
    surplus = f", {over} of them over quota" if over else ""
    return (
        f"{count(project.allocated, 'GPU')} allocated{surplus}; "
        f"{guaranteed}, fair share {project.fair_share}"
    )


def _reclaimed_gpus(project: ProjectQuota) -> str:
    if not project.pauses:
        return "–"
    return f"{count(project.reclaimed_gpus, 'GPU')} in {count(project.pauses, 'pause')}"


def _part(value: int, scale: int) -> float:
    return round(100 * value / scale, 2)
