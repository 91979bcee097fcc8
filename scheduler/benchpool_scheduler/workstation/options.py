"""Options of ``benchpool up`` and related commands (formats, section 4)."""

from __future__ import annotations

import ipaddress
import os
import pwd
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from benchpool_scheduler.contract.forwarding import listed
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.runtime import SandboxLevel
from benchpool_scheduler.workstation import files

Auth = Literal["one-time", "shared-password", "pam"]
AUTHS: tuple[str, ...] = get_args(Auth)
SANDBOXES: tuple[str, ...] = get_args(SandboxLevel)
DEFAULT_PORT = 8000
MOST_SAMPLE_S = 60
LOOPBACK = "127.0.0.1"
LEAST_SERVER_GIB, LEAST_SERVER_CPUS = 0.25, 0.1

_COOKIE = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")
_HOST = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*")

JobsAtEnd = Literal["keep", "pause", "cancel"]
ServersAtEnd = Literal["keep", "stop"]


@dataclass(frozen=True, slots=True)
class UpOptions:
    """Options of one start.

    Attributes:
        state: The state folder.
        port: Public port; 0 chooses any free port and keeps it.
        bind: Address to listen on.
        config: ``benchpool.yaml``; None uses the one in the state folder, created when missing.
        gpus: Number of simulated GPUs; None uses this machine's, else simulates eight.
        gpu_model: Model name of simulated GPUs.
        auth: Method of login.
        tls: Encrypt with a self-signed certificate.
        tls_cert, tls_key: Encrypt with the site's own certificate and its key; both or none.
        public_host: Host name for browsers; None uses ``bind``.
        subdomains: Each user's servers have a host name of their own below ``public_host``.
        insecure: Allow unencrypted access from other machines.
        sandbox: Isolation of jobs. ``server_sandbox``: isolation of notebook servers.
        server_memory: Memory limit of a notebook server in GiB, None for no limit.
            ``server_cpus``: limit in processor cores.
        trusted_proxies: Addresses and networks of proxies in front whose client headers count.
        hidden_cookies: Names of such a proxy's cookies that are hidden from served programs.
        backups: Number of daily copies of the databases to keep; 0 disables them.
        sample_s: Interval of GPU measurements, in seconds; 0 disables them.
        json: Print JSON lines.
    """

    state: Path
    port: int = DEFAULT_PORT
    bind: str = LOOPBACK
    config: Path | None = None
    gpus: int | None = None
    gpu_model: str | None = None
    auth: Auth = "one-time"
    tls: Literal["self-signed"] | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    public_host: str | None = None
    subdomains: bool = False
    insecure: bool = False
    sandbox: SandboxLevel = "auto"
    server_sandbox: SandboxLevel = "auto"
    server_memory: float | None = None
    server_cpus: float | None = None
    trusted_proxies: tuple[str, ...] = ()
    hidden_cookies: tuple[str, ...] = ()
    backups: int = 7
    sample_s: float = 10.0
    json: bool = False

    @property
    def encrypted(self) -> bool:
        """Return whether browsers use HTTPS."""
        return self.tls is not None or self.tls_cert is not None


@dataclass(frozen=True, slots=True)
class DownOptions:
    """Options of ``down``: what happens to jobs and notebook servers."""

    state: Path
    jobs: JobsAtEnd = "keep"
    servers: ServersAtEnd = "keep"
    json: bool = False


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    """Options of ``doctor``: a check of this machine, or with ``try_parking`` a test of parking."""

    state: Path
    json: bool = False
    try_parking: bool = False


def check(options: UpOptions) -> None:
    """Reject options that cannot work.

    Raises:
        InvalidInput: The message names the option and the remedy.
    """
    if not 0 <= options.port <= 65535:
        raise InvalidInput(
            f"--port is {options.port}: give a number from 0 (any free one) to 65535.", field="port"
        )
    try:
        ipaddress.ip_address(options.bind)
    except ValueError as bad:
        raise InvalidInput(
            f"--bind is {options.bind!r}: give an address of this machine, such as 127.0.0.1 "
            "or 0.0.0.0.",
            field="bind",
        ) from bad
    _check_spelling(options)
    _check_encryption(options)
    if options.auth not in AUTHS:
        raise InvalidInput(
            f"--auth is {options.auth!r}: choose one of {', '.join(AUTHS)}.", field="auth"
        )
    if options.auth == "pam" and os.geteuid() != 0:
        raise InvalidInput(
            "--auth pam starts servers as other accounts, which needs root: start it with sudo, "
            "or use --auth shared-password.",
            field="auth",
        )
    if options.gpus is not None and not 1 <= options.gpus <= 1024:
        raise InvalidInput(
            f"--gpus is {options.gpus}: give a number of simulated GPUs from 1 to 1024.",
            field="gpus",
        )
    _check_sandboxes(options)
    if options.sample_s and not 1 <= options.sample_s <= MOST_SAMPLE_S:
        raise InvalidInput(
            f"--measure-every is {options.sample_s:g}: give 1 to {MOST_SAMPLE_S} seconds, 0 for "
            "never.",
            field="measure_every",
        )
    _check_proxies(options)
    if options.backups < 0:
        raise InvalidInput(
            f"--backups is {options.backups}: give the number of daily copies to keep, 0 for none.",
            field="backups",
        )
    if options.config is not None and not options.config.is_file():
        raise InvalidInput(
            f"--config names {options.config}, which is not a file: write one, or omit the option "
            "to create a first one.",
            field="config",
        )


def _check_spelling(options: UpOptions) -> None:
    given = {
        "config": options.config,
        "tls-cert": options.tls_cert,
        "tls-key": options.tls_key,
    }
    for field, path in given.items():
        if path is not None:
            files.check_spelling(path.absolute(), f"--{field}", field)


def _check_sandboxes(options: UpOptions) -> None:
    if options.sandbox not in SANDBOXES:
        raise InvalidInput(
            f"--sandbox is {options.sandbox!r}: choose one of {', '.join(SANDBOXES)}.",
            field="sandbox",
        )
    if options.server_sandbox not in SANDBOXES:
        raise InvalidInput(
            f"--server-sandbox is {options.server_sandbox!r}: choose one of "
            f"{', '.join(SANDBOXES)}.",
            field="server-sandbox",
        )
    if options.server_memory is not None and not options.server_memory >= LEAST_SERVER_GIB:
        raise InvalidInput(
            f"--server-memory is {options.server_memory:g}: give at least {LEAST_SERVER_GIB:g} "
            "GiB, as JupyterLab itself needs memory.",
            field="server-memory",
        )
    if options.server_cpus is not None and not options.server_cpus >= LEAST_SERVER_CPUS:
        raise InvalidInput(
            f"--server-cpus is {options.server_cpus:g}: give at least {LEAST_SERVER_CPUS:g} "
            "processor cores.",
            field="server-cpus",
        )


def _check_encryption(options: UpOptions) -> None:
    if (options.tls_cert is None) != (options.tls_key is None):
        missing = "--tls-key" if options.tls_key is None else "--tls-cert"
        raise InvalidInput(
            f"{missing} is missing: give a certificate and its key together.",
            field=missing.removeprefix("--"),
        )
    if options.tls is not None and options.tls_cert is not None:
        raise InvalidInput(
            f"--tls {options.tls} and --tls-cert are two certificates: give only one of them.",
            field="tls",
        )
    if options.public_host is not None and not _HOST.fullmatch(options.public_host):
        raise InvalidInput(
            f"--public-host is {options.public_host[:100]!r}: give a name such as "
            "gpus.example.org, without https:// and port.",
            field="public-host",
        )
    if options.subdomains and (options.public_host is None or _is_address(options.public_host)):
        raise InvalidInput(
            "--subdomains needs a host name whose subdomains lead to this machine too: add "
            "--public-host with one, such as gpus.example.org.",
            field="subdomains",
        )
    loopback = ipaddress.ip_address(options.bind).is_loopback
    if not (loopback or options.encrypted or options.insecure):
        raise InvalidInput(
            f"--bind {options.bind} without encryption exposes passwords and notebooks to the "
            "network: add --tls self-signed, or --tls-cert and --tls-key, or --insecure to allow "
            "it.",
            field="bind",
        )


def _check_proxies(options: UpOptions) -> None:
    known = listed(options.trusted_proxies, field="trusted-proxy")
    if known.names:
        raise InvalidInput(
            f"--trusted-proxy is {known.names[0]}: give its address or network, such as 10.0.0.7 "
            "or 10.0.0.0/24.",
            field="trusted-proxy",
        )
    for name in options.hidden_cookies:
        if not _COOKIE.fullmatch(name):
            raise InvalidInput(
                f"--hide-cookie is {name[:100]!r}: give the name of one cookie, such as "
                "_oauth2_proxy.",
                field="hide-cookie",
            )


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def account() -> str:
    """Return the name of the account that starts benchpool: its first administrator."""
    return pwd.getpwuid(os.geteuid()).pw_name.lower()
