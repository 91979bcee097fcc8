"""JupyterHub on a cluster: notebook servers as pods, each with GPUs by a lease.

Declarative, and the same file for the chart of benchpool and for an existing zero-to-jupyterhub:
put it into the hub's image or ``hub.extraFiles`` and load it from ``hub.extraConfig``. It adds to
the existing configuration and replaces only the class of the spawner. The facts come from the
environment of the hub:

    BENCHPOOL_SCHEDULER_URL   where the hub reaches the scheduler, with /services/benchpool
    BENCHPOOL_HUB_TOKEN       token of the hub for requests to the scheduler
    BENCHPOOL_SERVICE_TOKEN   token of the scheduler for requests to the hub
    BENCHPOOL_PUBLIC_URL      where notebooks reach the scheduler; default: BENCHPOOL_SCHEDULER_URL
"""

import os
from pathlib import Path

import benchpool_spawner

c = get_config()  # noqa: F821
# The path is explicit, because a sub-configuration that is not found is skipped silently.
load_subconfig("roles.py", path=str(Path(__file__).parent))  # noqa: F821

scheduler_url = os.environ["BENCHPOOL_SCHEDULER_URL"].rstrip("/")
address = scheduler_url.removesuffix("/services/benchpool")

# --- notebook servers
c.JupyterHub.spawner_class = "benchpool_spawner.kube.BenchpoolKubeSpawner"
c.QuotaMixin.scheduler_url = scheduler_url
c.QuotaMixin.scheduler_token = os.environ["BENCHPOOL_HUB_TOKEN"]
c.QuotaMixin.public_scheduler_url = os.environ.get("BENCHPOOL_PUBLIC_URL", scheduler_url)
c.JupyterHub.template_paths.insert(
    0, str(Path(benchpool_spawner.__file__).parent / "templates" / "hub")
)
# For the Hub, servers that wait in the queue for GPUs are starts, so they count here.
c.JupyterHub.concurrent_spawn_limit = 500
# Notebooks outlive the Hub.
c.JupyterHub.cleanup_servers = False

# --- the scheduler, which is a separate deployment
c.JupyterHub.services.extend(
    [
        {
            "name": "benchpool",
            "url": address,
            "api_token": os.environ["BENCHPOOL_SERVICE_TOKEN"],
            "oauth_no_confirm": True,
            "oauth_client_allowed_scopes": ["read:users:groups!user", "read:users:name!user"],
        },
        # Set by `admin` instead of a role in load_roles: naming the role there would take it at the
        # next start from every administrator made on the Hub's admin page.
        {
            "name": "benchpool-hub",
            "api_token": os.environ["BENCHPOOL_HUB_TOKEN"],
            "admin": True,
            "display": False,
        },
    ]
)
