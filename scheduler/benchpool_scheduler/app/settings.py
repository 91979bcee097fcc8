"""Settings of the scheduler process, and the only place that reads its environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import get_args
from urllib.parse import urlsplit

import traitlets
from traitlets.config import Application

from benchpool_scheduler.contract.forwarding import LOOPBACK, Proxies, listed
from benchpool_scheduler.runtime import SandboxLevel


def variable(name: str, default: str = "") -> str:
    """Return a variable of the process's environment. An empty one counts as unset."""
    return os.environ.get(name) or default


def _words(name: str) -> list[str]:
    """Return the comma-separated words of a variable."""
    return [word.strip() for word in variable(name).split(",") if word.strip()]


class SchedulerApp(Application):
    """Settings of the process. Each has an environment variable, named in its help."""

    name = "benchpool-scheduler"
    description = "The scheduler of benchpool, as a service of JupyterHub."

    mode = traitlets.Enum(
        ("embedded", "kubernetes"),
        help="`embedded` runs jobs as processes of this machine, `kubernetes` as pods of a "
        "cluster; BENCHPOOL_MODE.",
    ).tag(config=True)
    state = traitlets.Unicode(help="State folder; BENCHPOOL_STATE.").tag(config=True)
    configuration_file = traitlets.Unicode(
        help="benchpool.yaml; BENCHPOOL_CONFIG, else the one in the state folder."
    ).tag(config=True)
    notifications_file = traitlets.Unicode(
        help="notifications.yaml; BENCHPOOL_NOTIFICATIONS, else the one in the state folder."
    ).tag(config=True)
    settings_file = traitlets.Unicode(
        help="A traitlets file (Python) with settings of SchedulerApp; BENCHPOOL_SETTINGS."
    )
    accounts = traitlets.Enum(
        ("shared", "system"),
        help="`system` runs jobs as the system account of their user; BENCHPOOL_ACCOUNTS.",
    ).tag(config=True)
    simulated_gpus = traitlets.Integer(
        0,
        min=0,
        max=1024,
        help="Number of GPUs to simulate instead of using this machine's; "
        "BENCHPOOL_SIMULATED_GPUS.",
    ).tag(config=True)
    gpu_model = traitlets.Unicode(help="Model of simulated GPUs; BENCHPOOL_GPU_MODEL.").tag(
        config=True
    )
    sandbox = traitlets.Enum(
        get_args(SandboxLevel),
        help="Isolation of jobs on one machine: `auto`, `full` (own temporary folders also if all "
        "jobs run under one account) or `off`; BENCHPOOL_SANDBOX.",
    ).tag(config=True)
    worker_environment = traitlets.List(
        traitlets.Unicode(),
        help="Environment variables of every worker: NAME takes the scheduler's value, NAME=VALUE "
        "sets one; BENCHPOOL_WORKER_ENVIRONMENT, separated by commas.",
    ).tag(config=True)
    backups = traitlets.Integer(
        min=0,
        help="Number of daily copies of the databases to keep, 0 for none; BENCHPOOL_BACKUPS, "
        "else 7.",
    ).tag(config=True)
    metrics_token = traitlets.Unicode(
        help="Token that gives monitoring access to `metrics` only, also while the Hub is "
        "unavailable; BENCHPOOL_METRICS_TOKEN, none by default."
    ).tag(config=True)
    sample_s = traitlets.Float(
        min=0,
        max=60,
        help="Interval between measurements of the use of GPUs, processors and memory, 1 to 60 "
        "seconds; 0 disables them; BENCHPOOL_SAMPLE_S, else 10.",
    ).tag(config=True)
    hub_proxies = traitlets.List(
        traitlets.Unicode(),
        help="Addresses, networks or host names of the Hub's own proxy, whose forwarded client "
        "address is trusted; BENCHPOOL_HUB_PROXIES, separated by commas, else this machine.",
    ).tag(config=True)
    trusted_proxies = traitlets.List(
        traitlets.Unicode(),
        help="The same for proxies in front of that one; BENCHPOOL_TRUSTED_PROXIES, none by "
        "default.",
    ).tag(config=True)
    hidden_cookies = traitlets.List(
        traitlets.Unicode(),
        help="Names of cookies that are hidden from served programs besides the Hub's own, such as "
        "those of a login proxy in front of it; BENCHPOOL_HIDDEN_COOKIES, separated by commas.",
    ).tag(config=True)
    public_url = traitlets.Unicode(
        help="Public address of the service, for links to jobs; JUPYTERHUB_PUBLIC_URL, else the "
        "path below the Hub's own address."
    ).tag(config=True)

    aliases = {"mode": "SchedulerApp.mode", "state": "SchedulerApp.state"}  # noqa: RUF012

    @traitlets.default("mode")
    def _default_mode(self) -> str:
        return variable("BENCHPOOL_MODE", "embedded")

    @traitlets.default("state")
    def _default_state(self) -> str:
        return variable("BENCHPOOL_STATE")

    @traitlets.default("configuration_file")
    def _default_configuration_file(self) -> str:
        return variable("BENCHPOOL_CONFIG") or str(Path(self.state) / "benchpool.yaml")

    @traitlets.default("notifications_file")
    def _default_notifications_file(self) -> str:
        return variable("BENCHPOOL_NOTIFICATIONS") or str(Path(self.state) / "notifications.yaml")

    @traitlets.default("settings_file")
    def _default_settings_file(self) -> str:
        return variable("BENCHPOOL_SETTINGS")

    @traitlets.default("accounts")
    def _default_accounts(self) -> str:
        return variable("BENCHPOOL_ACCOUNTS", "shared")

    @traitlets.default("simulated_gpus")
    def _default_simulated_gpus(self) -> int:
        return int(variable("BENCHPOOL_SIMULATED_GPUS", "0"))

    @traitlets.default("gpu_model")
    def _default_gpu_model(self) -> str:
        return variable("BENCHPOOL_GPU_MODEL", "A100")

    @traitlets.default("sandbox")
    def _default_sandbox(self) -> str:
        return variable("BENCHPOOL_SANDBOX", "auto")

    @traitlets.default("worker_environment")
    def _default_worker_environment(self) -> list[str]:
        return _words("BENCHPOOL_WORKER_ENVIRONMENT")

    @traitlets.default("hub_proxies")
    def _default_hub_proxies(self) -> list[str]:
        return _words("BENCHPOOL_HUB_PROXIES") or LOOPBACK.split(",")

    @traitlets.default("trusted_proxies")
    def _default_trusted_proxies(self) -> list[str]:
        return _words("BENCHPOOL_TRUSTED_PROXIES")

    @traitlets.default("hidden_cookies")
    def _default_hidden_cookies(self) -> list[str]:
        return _words("BENCHPOOL_HIDDEN_COOKIES")

    @traitlets.default("backups")
    def _default_backups(self) -> int:
        return int(variable("BENCHPOOL_BACKUPS", "7"))

    @traitlets.default("metrics_token")
    def _default_metrics_token(self) -> str:
        return variable("BENCHPOOL_METRICS_TOKEN")

    @traitlets.default("sample_s")
    def _default_sample_s(self) -> float:
        return float(variable("BENCHPOOL_SAMPLE_S", "10"))

    @traitlets.validate("sample_s")
    def _valid_sample_s(self, proposal: traitlets.Bunch) -> float:
        given = float(proposal["value"])
        if 0 < given < 1:
            raise traitlets.TraitError(f"sample_s is {given:g}; it must be 0, or from 1 to 60.")
        return given

    @traitlets.default("public_url")
    def _default_public_url(self) -> str:
        return variable("JUPYTERHUB_PUBLIC_URL") or variable("JUPYTERHUB_SERVICE_PREFIX", "/")

    @property
    def proxies(self) -> Proxies:
        """Proxies whose headers about the origin of requests are trusted. Errors: InvalidInput."""
        return Proxies(
            listed(self.hub_proxies, "hub_proxies"), listed(self.trusted_proxies, "trusted_proxies")
        )

    @property
    def prefix(self) -> str:
        """Address prefix of the service on the Hub, with leading and trailing slashes."""
        return variable("JUPYTERHUB_SERVICE_PREFIX", "/services/benchpool/")

    @property
    def start_id(self) -> str | None:
        """ID of the start of ``benchpool up`` that the process belongs to, or None.

        ``health`` returns it, so that ``up`` recognises its own scheduler.
        """
        return variable("BENCHPOOL_START") or None

    @property
    def address(self) -> tuple[str, int]:
        """Host and port to listen on."""
        at = urlsplit(variable("JUPYTERHUB_SERVICE_URL", "http://127.0.0.1:0"))
        return at.hostname or "127.0.0.1", at.port or 0

    def worker_variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the administrator's allowed environment variables with their values."""
        pairs = [one.partition("=") for one in self.worker_environment]
        return {
            name: value if sign else environ[name]
            for name, sign, value in pairs
            if sign or name in environ
        }
