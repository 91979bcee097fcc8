"""Volumes of an installed release are lost and restored by the printed commands."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from pathlib import Path

import pytest

from benchpool_cluster import build, parts
from benchpool_cluster.sites import Site, lives
from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_scheduler.contract.configuration import ConfigurationEdit, Setting
from benchpool_scheduler.errors import Refused
from benchpool_support.waiting import until

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(2400)]

CODE = b"print('the code that was sent')\n" * 4000
SHA256 = hashlib.sha256(CODE).hexdigest()
SPOIL = "open('/srv/jupyterhub/jupyterhub.sqlite', 'r+b').write(bytes(4096))"
READ = "import sqlite3; sqlite3.connect('/srv/jupyterhub/jupyterhub.sqlite').execute('vacuum')"
LOSE = "rm -r /var/lib/benchpool/objects /var/lib/benchpool/scheduler"


def in_part(site: Site, part: str, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a pod of a component."""
    pod = parts.pods_of(site, part)[0]["metadata"]["name"]
    words = site.cluster.kubectl("--namespace", site.namespace, "exec", pod, "--", *command)
    return subprocess.run(words, capture_output=True, text=True, timeout=60)


def typed(site: Site, folder: Path, *lines: str) -> str:
    """Run lines in a shell without changes; return the output. A failure raises."""
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    for name in ("kubectl", "helm"):
        link = tools / name
        if not link.exists():
            link.symlink_to(build.find(name))
    environ = os.environ | {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "KUBECONFIG": str(site.access.kubeconfig),
        "HOME": str(folder),
    }
    done = subprocess.run(
        ["bash", "-e"], input="\n".join(lines), env=environ, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{lines}:\n{done.stdout}{done.stderr}"
    return done.stdout


def printed(text: str, pattern: str) -> list[str]:
    """Return the commands in backquotes of a printed text."""
    return re.findall(rf"`({pattern}[^`]*)`", text)


def test_lost_volumes_are_restored_by_printed_commands(site: Site, tmp_path: Path) -> None:
    # Data that a site would miss: a user's token, uploaded code, the audit trail, a quota change.
    entry = CommandEntry(["python3", "-c", "import time; time.sleep(3600)"])
    susan, admin = site.client("susan"), site.client("admin", patience_s=180)
    susan.put_object(SHA256, CODE)
    job = susan.submit(JobSubmission(entry=entry)).id
    site.wait_job(job, "running", 120)
    (worker,) = site.workers(job)
    admin.set_config(ConfigurationEdit([Setting("projects.joe.quota", 1)], "before the loss"))
    noted = admin.verify_audit()

    # Copies, created as `benchpool backup` describes.
    with pytest.raises(Refused) as refused:
        admin.backup()
    message = str(refused.value)
    copying = printed(message, "kubectl [^`]* create job ")
    assert len(copying) == 2, message
    made = re.findall(r"job.batch/(\S+) created", typed(site, tmp_path, *copying))
    waiting = f"kubectl -n {site.namespace} wait --for=condition=complete --timeout=180s"
    typed(site, tmp_path, " ".join([waiting, *(f"job/{it}" for it in made)]))

    # The loss.
    assert in_part(site, "hub", "python3", "-c", SPOIL).returncode == 0
    spoilt = in_part(site, "hub", "python3", "-c", READ)
    assert "file is not a database" in spoilt.stderr
    lost = in_part(site, "scheduler", "sh", "-c", LOSE)
    assert lost.returncode == 0, lost.stderr

    # The restore, as printed by the release's notes.
    (notes_command,) = printed(message, "helm ")
    notes = typed(site, tmp_path, notes_command)
    _, _, putting = notes.partition("Restore the newest copies")
    commands = re.findall(r"^  (now=.*|kubectl .*)$", putting.partition("\n\n")[0], re.MULTILINE)
    output = typed(site, tmp_path, *commands)
    assert "jupyterhub.sqlite was restored" in output
    assert "Restored to /volume: 1 uploaded file" in output
    assert "do not match the trail" not in output
    parts.wait_whole(site, "hub")
    parts.wait_whole(site, "scheduler", 2)
    site.wait_ready()

    # Token, code, trail and version are unchanged; the job was never touched.
    until(lambda: susan.job(job).job.state == "running")
    assert susan.missing_objects([SHA256]).sha256 == []
    trail = admin.verify_audit(noted.last, noted.hash)
    assert trail.ok, trail
    assert "before the loss" in [it.reason for it in admin.config_log()]
    (project,) = [it for it in site.client("joe").quota().projects if it.name == "joe"]
    assert project.quota == 1
    assert [lives(it) for it in site.workers(job)] == [lives(worker)]
    admin.set_config(ConfigurationEdit([Setting("projects.joe.quota", 2)], "as it was"))
