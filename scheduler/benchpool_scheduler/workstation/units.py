"""``benchpool up --install``: the systemd unit of ``benchpool up``.

There are two kinds. A *system* unit, for root, starts with the machine; a *user* unit starts with
its user. Jobs and notebook servers outlive ``benchpool up``, so systemd ends only that process
(``KillMode=process``), and restarts it after any exit.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.worker.supervisor.cgroups import SERVICE
from benchpool_scheduler.workstation.options import UpOptions

Kind = Literal["system", "user"]

NAME = "benchpool.service"
BOOTED = Path("/run/systemd/system")
"""Folder that exists where systemd runs the machine."""

WATCHDOG_S = 60
RESTART_S = 5
STOP_S = 90

SUBGROUP_SINCE = 254
"""First version of systemd with ``DelegateSubgroup``; earlier ones would log a warning."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Unit file: its path and content."""

    kind: Kind
    path: Path
    text: str

    @property
    def systemctl(self) -> str:
        """Return the command of its systemd."""
        return "systemctl" if self.kind == "system" else "systemctl --user"

    @property
    def advice(self) -> tuple[str, ...]:
        """Return the next commands for the user, each with its purpose."""
        lines = [
            f"{self.systemctl} daemon-reload",
            f"{self.systemctl} enable --now {NAME}   # start it now, and at each boot",
        ]
        if self.kind == "user":
            lines.append("loginctl enable-linger   # keep it running while you are logged out")
        journal = "journalctl" if self.kind == "system" else "journalctl --user"
        return *lines, f"{journal} -u {NAME} -f   # its log"


def unit(kind: Kind, options: UpOptions, environ: Mapping[str, str]) -> Unit:
    """Return the unit that starts ``benchpool up`` with these options and this Python."""
    return Unit(kind, folder_of(kind, environ) / NAME, _text(kind, command(options), environ))


def folder_of(kind: Kind, environ: Mapping[str, str]) -> Path:
    """Return the folder of units of a kind."""
    if kind == "system":
        return Path("/etc/systemd/system")
    home = Path(environ.get("HOME") or Path.home())
    return Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "systemd" / "user"


def install(unit: Unit) -> None:
    """Write a unit. Errors: Unavailable when its folder cannot be written."""
    try:
        unit.path.parent.mkdir(parents=True, exist_ok=True)
        unit.path.write_text(unit.text)
    except OSError as failed:
        way = "use --install user" if unit.kind == "system" else "set XDG_CONFIG_HOME"
        raise Unavailable(
            f"{unit.path} cannot be written ({failed.strerror}): {way}, or run it with sudo.",
            code="unit-not-written",
        ) from failed


def command(options: UpOptions) -> list[str]:
    """Return the command line that starts ``benchpool up`` with these options."""
    words = [sys.executable, "-m", "benchpool_scheduler.cli", "up"]
    given: dict[str, object] = {
        "--state": options.state.absolute(),
        "--port": options.port,
        "--bind": options.bind,
        "--config": None if options.config is None else options.config.absolute(),
        "--gpus": options.gpus,
        "--gpu-model": options.gpu_model,
        "--auth": options.auth,
        "--tls": options.tls,
        "--tls-cert": None if options.tls_cert is None else options.tls_cert.absolute(),
        "--tls-key": None if options.tls_key is None else options.tls_key.absolute(),
        "--public-host": options.public_host,
        "--sandbox": options.sandbox,
        "--server-sandbox": options.server_sandbox,
        "--server-memory": options.server_memory,
        "--server-cpus": options.server_cpus,
        "--backups": options.backups,
        "--measure-every": f"{options.sample_s:g}",
    }
    for name, value in given.items():
        if value is not None:
            words += [name, str(value)]
    for proxy in options.trusted_proxies:
        words += ["--trusted-proxy", proxy]
    for cookie in options.hidden_cookies:
        words += ["--hide-cookie", cookie]
    for name, enabled in (("--subdomains", options.subdomains), ("--insecure", options.insecure)):
        words += [name] if enabled else []
    return words


def state(kind: Kind) -> tuple[str, str]:
    """Return systemd's words for the unit: whether it is enabled, and whether it is active."""
    words = ["systemctl", *(["--user"] if kind == "user" else [])]
    states = []
    for question in ("is-enabled", "is-active"):
        try:
            done = subprocess.run(
                [*words, question, NAME], capture_output=True, text=True, timeout=10, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return "unknown", "unknown"
        states.append(done.stdout.strip() or "unknown")
    return states[0], states[1]


def version() -> int:
    """Return the version of this machine's systemd; 0 without one."""
    try:
        done = subprocess.run(
            ["systemctl", "--version"], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    words = done.stdout.split()
    return int(words[1]) if len(words) > 1 and words[1].isdecimal() else 0


def _text(kind: Kind, words: list[str], environ: Mapping[str, str]) -> str:
    path = environ.get("PATH") or os.defpath
    wanted = "multi-user.target" if kind == "system" else "default.target"
    # A cgroup beside those of the jobs, so that these can have the controllers (cgroup v2).
    subgroup = f"DelegateSubgroup={SERVICE}\n" if version() >= SUBGROUP_SINCE else ""
    network = "After=network-online.target\nWants=network-online.target\n"
    return f"""\
# Written by `benchpool up --install`; that command writes it again.
[Unit]
Description=benchpool: JupyterHub and the GPU pool of this machine
{network if kind == "system" else ""}StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
ExecStart={" ".join(map(quoted, words))}
ExecReload=/bin/kill -HUP $MAINPID
Environment={quoted(f"PATH={path}")}
Environment=PYTHONUNBUFFERED=1
Restart=always
RestartSec={RESTART_S}
# The first start reads all jobs and reports its progress; it has no timeout.
TimeoutStartSec=infinity
TimeoutStopSec={STOP_S}
WatchdogSec={WATCHDOG_S}
# Jobs and notebook servers run on, and the next start finds them again.
KillMode=process
OOMPolicy=continue
Delegate=yes
{subgroup}LimitNOFILE=65536

[Install]
WantedBy={wanted}
"""


def quoted(word: str) -> str:
    r"""Return a word quoted for systemd.

    >>> print(quoted("/srv/my pool"), quoted("50%"), quoted("$HOME"), quoted("plain"))
    "/srv/my pool" 50%% $$HOME plain
    """
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    needs = any(sign in word for sign in " \t\"'\\;") or not word
    return f'"{escaped}"' if needs else escaped
