"""Addresses of a workstation, for browsers and for programs of its machine."""

from __future__ import annotations

from dataclasses import dataclass

from benchpool_scheduler.workstation.options import LOOPBACK, UpOptions
from benchpool_scheduler.workstation.ports import Ports


@dataclass(frozen=True, slots=True)
class Addresses:
    """Addresses of a workstation's servers.

    Attributes:
        url: Address for browsers.
        hub_api, scheduler: Addresses for programs of this machine.
        proxy: Address of the proxy on this machine; requests to it name ``host``.
    """

    url: str
    hub_api: str
    scheduler: str
    proxy: str
    host: str

    @property
    def scheduler_api(self) -> str:
        """Return the address of the scheduler's API."""
        return f"{self.scheduler}/api/v1"


def of(options: UpOptions, numbers: Ports) -> Addresses:
    """Return the addresses of a workstation with these options and ports."""
    bound = {"0.0.0.0": LOOPBACK, "::": "::1"}.get(options.bind, options.bind)  # noqa: S104
    scheme = "https" if options.encrypted else "http"
    host = f"{_in_brackets(options.public_host or bound)}:{numbers.public}"
    url = f"{scheme}://{host}/"
    proxy_url = f"{scheme}://{_in_brackets(bound)}:{numbers.public}/"
    if options.encrypted or options.public_host:
        # Programs of this machine need no certificate, and no name that only other machines
        # resolve.
        hub, scheduler = (
            f"http://{LOOPBACK}:{numbers.hub}/",
            f"http://{LOOPBACK}:{numbers.scheduler}/",
        )
    else:
        hub = scheduler = url
    return Addresses(url, f"{hub}hub/api", f"{scheduler}services/benchpool", proxy_url, host)


def _in_brackets(host: str) -> str:
    return f"[{host}]" if ":" in host else host
