"""Checks of the limits and isolation of jobs and notebook servers, for ``benchpool doctor``."""

from __future__ import annotations

from benchpool_scheduler.worker.supervisor import probe
from benchpool_scheduler.workstation.finding import Finding

BOUNDS = {"memory": "memory", "cpu": "processor", "pids": "number of processes"}

CGROUPS = (
    "Start it as root, or by `benchpool up --install`, with systemd 254 or newer, or in a "
    "container that has a cgroup of its own to write to."
)
"""Remedy for limits that the kernel does not allow us to set."""


def look(process: int | None) -> list[Finding]:
    """Check the containment of jobs and servers started by a process; None for this one."""
    found = probe.look("self" if process is None else process)
    return [_processes(found), _bounds(found), _devices(found), _private(found)]


def _processes(found: probe.Report) -> Finding:
    if found.group:
        text = (
            "workers are ended through an own cgroup, their process tree and a sweep for their tag."
        )
        return Finding("Processes", "ok", f"cgroups: {found.tree}; {text}")
    return Finding(
        "Processes",
        "degraded",
        f"cgroups: {found.tree}; no own cgroup can be made; workers are killed through their "
        "process tree, which their supervisors note twice a second, and a sweep for their tag.",
        "A child of a job that clears its environment within half a second before its supervisor "
        "is killed could be left behind; run as root or below a delegated cgroup to rule that out.",
    )


def _bounds(found: probe.Report) -> Finding:
    lacking = [word for key, word in BOUNDS.items() if key not in found.bounds]
    if not lacking:
        return Finding(
            "Limits",
            "ok",
            "Unless their sandbox is off: jobs that ask for memory and processor cores get no more "
            "than that, nor do notebook servers with --server-memory and --server-cpus, and none "
            "may fill the machine with processes.",
        )
    return Finding(
        "Limits",
        "degraded",
        f"Nothing bounds {', '.join(lacking)} of jobs and notebook servers: what they ask for is "
        "counted, and not held.",
        CGROUPS,
    )


def _devices(found: probe.Report) -> Finding:
    if "devices" in found.bounds:
        return Finding(
            "Devices",
            "ok",
            "Unless their sandbox is off: jobs and notebook servers cannot open GPUs of others.",
        )
    return Finding(
        "Devices",
        "degraded",
        "Jobs and notebook servers can open GPUs that they were not given: CUDA_VISIBLE_DEVICES "
        "alone keeps them from those.",
        "Start it as root: only root may have the kernel deny devices.",
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
    rights = "Unless their sandbox is off: jobs get no rights by setuid programs"
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
            "Start it as root with --auth pam, on Linux 5.8 or newer, to hide those of others.",
        )
    return Finding(
        "Separation",
        "degraded",
        f"{rights}; they share /tmp and see the processes of all accounts.",
        "Start it as root with --auth pam, or let this account make user namespaces "
        "(sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns).",
    )
