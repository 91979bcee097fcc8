"""Where a workstation answers: for browsers, and for programs of its machine."""

from __future__ import annotations

from dataclasses import dataclass

from benchpool_scheduler.workstation.options import LOOPBACK, UpOptions
from benchpool_scheduler.workstation.ports import Ports


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where things answer.

    Attributes:
        url: Where browsers go.
        hub_api, scheduler: For programs of this machine.
        proxy: The front door, seen from this machine; it is asked for ``host``.
    """

    url: str
    hub_api: str
    scheduler: str
    proxy: str
    host: str

    @property
    def scheduler_api(self) -> str:
        """The scheduler's API."""
        return f"{self.scheduler}/api/v1"


def of(options: UpOptions, numbers: Ports) -> Addresses:
    """Return the addresses of a workstation with these options and ports."""
    bound = {"0.0.0.0": LOOPBACK, "::": "::1"}.get(options.bind, options.bind)  # noqa: S104
    scheme = "https" if options.encrypted else "http"
    host = f"{_in_brackets(options.public_host or bound)}:{numbers.public}"
    url = f"{scheme}://{host}/"
    proxy_url = f"{scheme}://{_in_brackets(bound)}:{numbers.public}/"
    if options.encrypted or options.public_host:
        # Programs of this machine need neither our certificate nor a name that others know.
        hub, scheduler = (
            f"http://{LOOPBACK}:{numbers.hub}/",
            f"http://{LOOPBACK}:{numbers.scheduler}/",
        )
    else:
        hub = scheduler = url
    return Addresses(url, f"{hub}hub/api", f"{scheduler}services/benchpool", proxy_url, host)


def _in_brackets(host: str) -> str:
    return f"[{host}]" if ":" in host else host
