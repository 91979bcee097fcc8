"""Messages of the API server about quotas and limit ranges of the namespace: pure.

Such a rejection is caused by the namespace rather than by the job, so the job waits. The API server
reports it only as a sentence. The patterns match ``resourcequota`` and ``limitranger`` in
kubernetes/plugin/pkg/admission.
"""

from __future__ import annotations

import re

from benchpool_scheduler.kube.quantities import quantity

FULL = re.compile(
    r"exceeded quota: (?P<name>[^,\s]+), requested: (?P<asked>\S+), used: (?P<used>\S+),"
    r" limited: (?P<limit>[^\s;]+)"
)
UNSPECIFIED = re.compile(r"failed quota: (?P<name>[^:\s]+): must specify (?P<what>.+)")
SPECIFIED_BY = {
    "limits.cpu": "--cpus, where the site sets jobs.cpuLimit",
    "requests.cpu": "--cpus",
    "limits.memory": "--memory",
    "requests.memory": "--memory",
}
"""Options of a job that specify the resources a quota may require, by resource."""
BOUNDS = re.compile(
    r"(?:maximum|minimum) [\w./-]+ usage per \w+ is [^,\]]+(?:, but (?:limit|request) is [^,\]]+)?"
    r"|[\w./-]+ max limit to request ratio per \w+ is [^,\]]+(?:, but provided ratio is [^,\]]+)?"
)


def no_room(message: str, namespace: str) -> str | None:
    """Return why the namespace rejects a pod, with name and numbers; None for other rejections.

    >>> no_room(
    ...     'pods "w" is forbidden: exceeded quota: team, requested: pods=1,requests.memory=8Gi, '
    ...     "used: pods=3,requests.memory=60Gi, limited: pods=9,requests.memory=64Gi",
    ...     "work",
    ... )
    'quota team of namespace work has no room: requests.memory 60Gi of 64Gi used, 8Gi requested'
    >>> no_room(
    ...     'pods "w" is forbidden: maximum memory usage per Container is 1Gi',
    ...     "work",
    ... )
    'a limit range of namespace work does not allow it: maximum memory usage per Container is 1Gi'
    >>> no_room("failed quota: q: must specify requests.cpu for: worker", "work")
    'quota q of namespace work admits only pods that specify requests.cpu for: worker (by --cpus)'
    >>> no_room("ValidatingAdmissionPolicy 'x' denied request", "work") is None
    True
    """
    full = FULL.search(message)
    if full is not None:
        asked, used, limit = (_amounts(full[part]) for part in ("asked", "used", "limit"))
        scarce = [key for key in asked if _short(asked[key], used.get(key), limit.get(key))]
        each = (
            f"{key} {used.get(key, '0')} of {limit.get(key, '?')} used, {asked[key]} requested"
            for key in scarce or asked
        )
        return f"quota {full['name']} of namespace {namespace} has no room: {'; '.join(each)}"
    unspecified = UNSPECIFIED.search(message)
    if unspecified is not None:
        name, what = unspecified["name"], unspecified["what"].rstrip(".")
        how = dict.fromkeys(way for key, way in SPECIFIED_BY.items() if key in what)
        text = f"quota {name} of namespace {namespace} admits only pods that specify {what}"
        return f"{text} (by {' and '.join(how)})" if how else text
    bounds = BOUNDS.findall(message)
    if bounds:
        return f"a limit range of namespace {namespace} does not allow it: {'; '.join(bounds)}"
    return None


def _amounts(text: str) -> dict[str, str]:
    return dict(one.split("=", 1) for one in text.split(",") if "=" in one)


def _short(asked: str, used: str | None, limit: str | None) -> bool:
    return quantity(asked) + quantity(used or "0") > quantity(limit or "0")
