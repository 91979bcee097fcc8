"""Checks of the limits and isolation of jobs and notebook servers, for ``benchpool doctor``."""

from __future__ import annotations

from benchpool_scheduler.worker.supervisor import probe
from benchpool_scheduler.workstation.finding import Finding

BOUNDS = {"memory": "memory", "cpu": "processor", "pids": "number of processes"}

CGROUPS = (
    "Start it as root, or by `benchpool up --install`, with systemd 254 or newer, or in a "
    "container with its own writable cgroup."
)
"""Remedy for limits that the kernel does not allow us to set."""


def look(process: int | None) -> list[Finding]:
    """Check the containment of jobs and servers started by a process; None for this one."""
    found = probe.look("self" if process is None else process)
    return [_processes(found), _bounds(found), _devices(found), _private(found)]


def _processes(found: probe.Report) -> Finding:
    if found.group:
        text = (
            "workers are stopped through their own cgroup, their process tree and a search for "
            "their tag."
        )
        return Finding("Processes", "ok", f"cgroups: {found.tree}; {text}")
    return Finding(
        "Processes",
        "degraded",
        f"cgroups: {found.tree}; benchpool cannot create a cgroup. Workers are killed through "
        "their process tree, which their supervisors record twice a second, and a search for "
        "their tag.",
        "A child of a job that clears its environment within half a second before its supervisor "
        "is killed can be left running. Run as root or below a delegated cgroup to prevent that.",
    )


def _bounds(found: probe.Report) -> Finding:
    lacking = [word for key, word in BOUNDS.items() if key not in found.bounds]
    if not lacking:
        return Finding(
            "Limits",
            "ok",
            "Unless their sandbox is off: the memory and processor cores of a job are limited to "
            "its request, those of notebook servers to --server-memory and --server-cpus. The "
            "number of processes is limited as well.",
        )
    return Finding(
        "Limits",
        "degraded",
        f"No limit on {', '.join(lacking)} of jobs and notebook servers: requests are counted, "
        "but not enforced.",
        CGROUPS,
    )


def _devices(found: probe.Report) -> Finding:
    if "devices" in found.bounds:
        return Finding(
            "Devices",
            "ok",
            "Unless their sandbox is off: jobs and notebook servers cannot open GPUs of other "
            "jobs and servers.",
        )
    return Finding(
        "Devices",
        "degraded",
        "Jobs and notebook servers can open GPUs that they do not hold: only CUDA_VISIBLE_DEVICES "
        "hides those GPUs.",
        "Start it as root: only root can make the kernel deny devices.",
    )


def _private(found: probe.Report) -> Finding:
    if not found.privileges:
        return Finding(
            "Separation",
            "degraded",
            "Setuid programs give jobs and notebook servers more rights than their account has "
            "(no_new_privs fails).",
            "Use Linux 3.5 or newer.",
        )
    rights = "Unless their sandbox is off: jobs gain no rights from setuid programs"
    if found.private >= {"tmp", "processes"}:
        return Finding(
            "Separation",
            "ok",
            f"{rights}; with --auth pam neither do notebook servers, and each job and server has "
            "a /tmp of its own and does not see the processes of other accounts.",
        )
    if "tmp" in found.private:
        return Finding(
            "Separation",
            "degraded",
            f"{rights}; they see the processes of all accounts. With --sandbox full each has a "
            "/tmp of its own, with --server-sandbox full each notebook server.",  # noqa: S108
            "Start it as root with --auth pam, on Linux 5.8 or newer, to hide the processes of "
            "other accounts.",
        )
    return Finding(
        "Separation",
        "degraded",
        f"{rights}; they share /tmp and see the processes of all accounts.",
        "Start it as root with --auth pam, or let this account create user namespaces (sysctl "
        "user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns).",
    )
