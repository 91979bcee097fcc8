"""JupyterHub on a cluster: notebook servers as pods, each with GPUs by a lease.

Declarative, and the same file for the chart of benchpool and for an existing zero-to-jupyterhub:
put it into the hub's image or ``hub.extraFiles`` and load it from ``hub.extraConfig``. It adds to
what is configured already and replaces only the class of the spawner. The facts come from the
environment of the hub:

    BENCHPOOL_SCHEDULER_URL   where the hub reaches the scheduler, with /services/benchpool
    BENCHPOOL_HUB_TOKEN       the token by which the scheduler knows the hub
    BENCHPOOL_SERVICE_TOKEN   the token by which the hub knows the scheduler
    BENCHPOOL_PUBLIC_URL      where notebooks reach the scheduler; by default the hub's own proxy
"""

import os
from pathlib import Path

import benchpool_spawner

c = get_config()  # noqa: F821
# With its folder: a sub-configuration that is not found is passed over without a word.
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
# Those who wait in line for GPUs are starts to the Hub, so that they count here.
c.JupyterHub.concurrent_spawn_limit = 500
# Notebooks outlive the Hub.
c.JupyterHub.cleanup_servers = False

# --- the scheduler, which is a deployment of its own
c.JupyterHub.services.extend(
    [
        {
            "name": "benchpool",
            "url": address,
            "api_token": os.environ["BENCHPOOL_SERVICE_TOKEN"],
            "oauth_no_confirm": True,
            "oauth_client_allowed_scopes": ["read:users:groups!user", "read:users:name!user"],
        },
        # By `admin`, and not by a role in load_roles: naming the role there would take it from
        # every administrator made on the Hub's admin page at the next start.
        {
            "name": "benchpool-hub",
            "api_token": os.environ["BENCHPOOL_HUB_TOKEN"],
            "admin": True,
            "display": False,
        },
    ]
)
