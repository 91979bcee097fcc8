"""Address and credentials of an API server, from a kubeconfig or the pod's own account."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from kubernetes.aio import client, config
from kubernetes.aio.client.rest import RESTClientObject

from benchpool_scheduler.errors import Unavailable

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


@dataclass(frozen=True, slots=True)
class Where:
    """Source of credentials; if both are None, the pod's account, else kubectl's default file."""

    kubeconfig: Path | None = None
    context: str | None = None


class KubeCredentials:
    """An API server's address and credentials; tokens are renewed by their source.

    Attributes:
        server: URL without a slash at its end.
        namespace: The namespace of the kubeconfig or the pod, else ``default``.
        tls: TLS context. ``server_name``: name in the server's certificate, if it differs.
        proxy: URL of a proxy that the kubeconfig names.
    """

    def __init__(self, settings: client.Configuration, namespace: str) -> None:
        self._settings = settings
        self.server = str(settings.host).rstrip("/")
        self.namespace = namespace
        self.tls: ssl.SSLContext = RESTClientObject(settings).ssl_context
        self.server_name: str | None = settings.tls_server_name or None
        self.proxy: str | None = settings.proxy or None

    async def headers(self) -> dict[str, str]:
        """Return the headers that authenticate a request now."""
        found: dict[str, str] = {}
        for one in (await self._settings.auth_settings()).values():
            if one["in"] == "header" and one["value"]:
                found[one["key"]] = one["value"]
        return found


async def find(where: Where) -> KubeCredentials:
    """Read the credentials. Raises Unavailable with the code ``kubernetes-config``."""
    settings = client.Configuration()
    try:
        if where.kubeconfig is None and where.context is None and _is_in_a_pod():
            config.load_incluster_config(client_configuration=settings)
            return KubeCredentials(settings, _namespace_of_the_pod())
        file = None if where.kubeconfig is None else str(where.kubeconfig)
        loader = await config.load_kube_config(
            config_file=file,
            context=where.context,
            client_configuration=settings,
            persist_config=False,
        )
    except (config.ConfigException, OSError) as failed:
        name = where.kubeconfig or "the pod's account or kubectl's default file"
        raise Unavailable(
            f"No Kubernetes API server found by {name} ({failed}). Name a kubeconfig file, or run "
            "in a pod with a service account.",
            code="kubernetes-config",
        ) from failed
    context = loader.current_context["context"]
    return KubeCredentials(settings, context.get("namespace") or "default")


def _is_in_a_pod() -> bool:
    return ACCOUNT.exists()


def _namespace_of_the_pod() -> str:
    return ACCOUNT.with_name("namespace").read_text().strip()
