"""The facts file: the settings of this start for ``hub_config/local.py``.

It contains secrets, so only its owner may read it. Command lines and environments contain none.
"""

from __future__ import annotations

import importlib.util
import json
import os
import site
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.workstation import files, host_names, jupyter
from benchpool_scheduler.workstation.hub_api import START_HEADER
from benchpool_scheduler.workstation.options import UpOptions, account
from benchpool_scheduler.workstation.ports import Ports
from benchpool_scheduler.workstation.proxy import Proxy
from benchpool_scheduler.workstation.state import StateFolder
from benchpool_scheduler.workstation.tls import Certificate

HUB_TOKEN_BYTES = 32
_PARENT_DEATH = Path(__file__).with_name("parent_death.py")
_HOST_GUARD = Path(__file__).with_name("host_guard.cjs")


@dataclass(frozen=True, slots=True)
class Secrets:
    """Random secrets of one workstation, stored in its state folder.

    Attributes:
        hub_token: Authenticates the Hub to the scheduler, and ``benchpool up`` to the Hub.
        user_password, admin_password: For ``--auth shared-password``.
    """

    hub_token: str
    user_password: str
    admin_password: str
    metrics_token: str


def secrets(folder: StateFolder) -> Secrets:
    """Return the secrets of this state folder, created at the first start."""
    return Secrets(
        hub_token=files.secret(folder.hub / "hub-token"),
        user_password=files.secret(folder.shared_password, size=9),
        admin_password=files.secret(folder.admin_password),
        metrics_token=files.secret(folder.metrics_token),
    )


def hub_config() -> Path:
    """Return the folder with the Hub's configuration: of the source tree, else as installed.

    Raises:
        Unavailable: It is in neither place.
    """
    installed = (sysconfig.get_path("data"), sys.prefix, site.getuserbase())
    for folder in (
        Path(__file__).parents[3] / "hub_config",
        *(Path(prefix) / "share/benchpool/hub_config" for prefix in installed),
    ):
        if (folder / "local.py").is_file():
            return folder
    raise Unavailable(
        "The Hub's configuration (share/benchpool/hub_config) is missing from this installation: "
        "install benchpool again.",
        code="incomplete-installation",
    )


def tie_to_parent(command: list[str], *, restart: bool = False) -> list[str]:
    """Return the command line that runs ``command`` for the lifetime of its parent."""
    options = ["--restart"] if restart else []
    return [sys.executable, "-I", "-S", str(_PARENT_DEATH), *options, *command]


def build(
    options: UpOptions,
    folder: StateFolder,
    config: Path,
    ports: Ports,
    proxy: Proxy,
    certificate: Certificate | None,
    start: str,
) -> dict[str, Any]:
    """Return the facts of one start.

    Args:
        start: Identity of this start, with which ``benchpool up`` recognises its own Hub.
    """
    words = secrets(folder)
    scheduler = [sys.executable, "-m", "benchpool_scheduler.app"]
    return {
        "headers": {START_HEADER: start},
        "bind": options.bind,
        "tls": None
        if certificate is None
        else {"cert": str(certificate.cert), "key": str(certificate.key)},
        "public_host": options.public_host,
        "subdomains": options.subdomains,
        "cookie_options": cookie_options(encrypted=options.encrypted),
        "auth": options.auth,
        "trusted_proxies": list(options.trusted_proxies),
        "admin": account(),
        "allow_root": os.geteuid() == 0,
        "ports": {name: getattr(ports, name) for name in ports.__struct_fields__},
        "secrets": {
            "hub_token": words.hub_token,
            "user_password": words.user_password,
            "admin_password": words.admin_password,
        },
        "paths": {
            "state": str(folder.path),
            "hub": str(folder.hub),
            "server_tmp": str(folder.server_tmp),
            "homes": str(folder.homes),
            "login_keys": str(folder.login_keys),
            "templates": _templates(),
            "jupyter_config": str(hub_config() / "jupyter"),
        },
        "path": _path(options),
        "proxy_command": tie_to_parent(_proxy(options, proxy)),
        "servers": {
            "sandbox": options.server_sandbox,
            "memory": _bytes(options.server_memory),
            "cpus": options.server_cpus,
        },
        "singleuser": jupyter.command("jupyterhub.singleuser"),
        "scheduler_command": tie_to_parent(scheduler, restart=True),
        "scheduler_environment": {**_scheduler(options, folder, config), "BENCHPOOL_START": start},
    }


def cookie_options(*, encrypted: bool) -> dict[str, Any]:
    """Return the options of every cookie: pages of other sites do not send it.

    >>> cookie_options(encrypted=True)
    {'samesite': 'Lax', 'secure': True}
    """
    return {"samesite": "Lax", **({"secure": True} if encrypted else {})}


def _bytes(gib: float | None) -> int | None:
    return None if gib is None else round(gib * 1024**3)


def hosts(options: UpOptions) -> tuple[str, ...]:
    """Return the allowed host names of requests; a leading dot includes all subdomains.

    IP addresses and ``localhost`` are always allowed.

    >>> from benchpool_scheduler.workstation.options import UpOptions
    >>> hosts(UpOptions(Path("s"), public_host="gpus.example.org", subdomains=True))[:2]
    ('gpus.example.org', '.gpus.example.org')
    """
    asked = options.public_host
    public = () if asked is None else (asked, *([f".{asked}"] if options.subdomains else []))
    return tuple(dict.fromkeys((*public, *host_names.of_machine())))


def _proxy(options: UpOptions, proxy: Proxy) -> list[str]:
    """Return the command line of the proxy, which answers only for our host names."""
    node, *rest = proxy.command
    known = f"BENCHPOOL_HOSTS={' '.join(hosts(options))}"
    return ["/usr/bin/env", known, node, "--require", str(_HOST_GUARD), *rest]


def _path(options: UpOptions) -> str:
    """Return the PATH of notebook servers: this environment's programs first.

    Other accounts get the system's folders, without those of the account that started us.
    """
    rest = "/usr/local/bin:/usr/bin:/bin" if options.auth == "pam" else os.environ.get("PATH", "")
    return os.pathsep.join([str(Path(sys.executable).parent), rest])


def _templates() -> str:
    # The scheduler never imports the spawner; the Hub needs the address of its pages.
    spec = importlib.util.find_spec("benchpool_spawner")
    if spec is None or not spec.submodule_search_locations:
        raise Unavailable(
            "benchpool_spawner is missing from this installation: install benchpool again.",
            code="incomplete-installation",
        )
    return str(Path(next(iter(spec.submodule_search_locations))) / "templates" / "hub")


def _scheduler(options: UpOptions, folder: StateFolder, config: Path) -> dict[str, str]:
    environment = {
        "BENCHPOOL_STATE": str(folder.path),
        "BENCHPOOL_CONFIG": str(config),
        "BENCHPOOL_BACKUPS": str(options.backups),
        "BENCHPOOL_TRUSTED_PROXIES": ",".join(options.trusted_proxies),
        "BENCHPOOL_HIDDEN_COOKIES": ",".join(options.hidden_cookies),
        "BENCHPOOL_METRICS_TOKEN": secrets(folder).metrics_token,
        "BENCHPOOL_SAMPLE_S": f"{options.sample_s:g}",
        "BENCHPOOL_SANDBOX": options.sandbox,
        "BENCHPOOL_ACCOUNTS": "system" if options.auth == "pam" else "shared",
        # The Hub passes its cookie options to notebook servers, but not to services.
        "JUPYTERHUB_COOKIE_OPTIONS": json.dumps(cookie_options(encrypted=options.encrypted)),
    }
    if options.gpus is not None:
        environment["BENCHPOOL_SIMULATED_GPUS"] = str(options.gpus)
    if options.gpu_model is not None:
        environment["BENCHPOOL_GPU_MODEL"] = options.gpu_model
    return environment
