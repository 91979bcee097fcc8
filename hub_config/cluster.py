"""JupyterHub of the chart: all settings besides those of `kubernetes.py`.

Declarative: facts come from the file named by BENCHPOOL_HUB_FACTS (made by the chart from its
values), and secrets from the environment. Settings of a site (`hub.config`, `hub.extraConfig`) come
last and take precedence.
"""

import json
import os
from pathlib import Path

from benchpool_scheduler.contract.forwarding import Proxies, listed
from benchpool_spawner.landing import default_url
from benchpool_spawner.logins import LoginReports

c = get_config()  # noqa: F821
facts_file = Path(os.environ["BENCHPOOL_HUB_FACTS"])
facts = json.loads(facts_file.read_text())
people, notebooks = facts["authenticator"], facts["notebooks"]
os.environ.setdefault("BENCHPOOL_SCHEDULER_URL", facts["scheduler_url"])
# The path is explicit, because a sub-configuration that is not found is skipped silently.
load_subconfig("kubernetes.py", path=str(Path(__file__).parent))  # noqa: F821

# --- addresses and files
c.JupyterHub.bind_url = f"http://:8000{facts['base_url']}"
c.JupyterHub.hub_bind_url = f"http://:8081{facts['base_url']}hub/"
c.JupyterHub.hub_connect_url = facts["hub_url"]
c.JupyterHub.db_url = os.environ["BENCHPOOL_DATABASE_URL"]
c.JupyterHub.public_url = facts["public_url"]
c.JupyterHub.tornado_settings = {"cookie_options": facts["cookie_options"]}
c.JupyterHub.proxy_class = "benchpool_spawner.watched_proxy.WatchedProxy"
c.ConfigurableHTTPProxy.should_start = False
c.ConfigurableHTTPProxy.api_url = facts["proxy_api_url"]
c.JupyterHub.allow_named_servers = True
c.JupyterHub.default_url = default_url

# --- users
short = {"shared-password": "shared-password", "dummy": "dummy"}
c.JupyterHub.authenticator_class = short.get(people["class"], people["class"])
# The scheduler's audit trail records every login and logout.
proxies = Proxies(listed(facts["hub_proxies"]), listed(facts["trusted_proxies"]))
reports = LoginReports(facts["scheduler_url"], os.environ["BENCHPOOL_HUB_TOKEN"], proxies)
c.Authenticator.post_auth_hook = reports
reports.report_logouts()
c.Authenticator.admin_users = set(people["admins"])
c.Authenticator.allow_all = people["allowAll"]
c.SharedPasswordAuthenticator.user_password = os.environ.get("BENCHPOOL_USER_PASSWORD", "")
c.SharedPasswordAuthenticator.admin_password = os.environ.get("BENCHPOOL_ADMIN_PASSWORD", "")

# --- notebook servers
c.KubeSpawner.namespace = facts["namespace"]
c.KubeSpawner.image = facts["image"]
c.KubeSpawner.image_pull_policy = facts["pull_policy"]
c.KubeSpawner.image_pull_secrets = facts["pull_secrets"]
c.KubeSpawner.service_account = facts["account"]
c.KubeSpawner.automount_service_account_token = False
c.KubeSpawner.cmd = ["jupyterhub-singleuser"]
c.KubeSpawner.args = [
    # The news pop-up would cover benchpool's button, and contacts hosts outside the cluster.
    "--LabApp.news_url=None",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
]
c.Spawner.default_url = "/lab"
c.Spawner.start_timeout = notebooks["startTimeout"]
c.Spawner.http_timeout = 90
# As required by the pod security standard `restricted`.
c.KubeSpawner.uid = 1000
c.KubeSpawner.gid = 100  # as for workers, so that a start never changes the group of a home
c.KubeSpawner.fs_gid = 100
c.KubeSpawner.allow_privilege_escalation = False
c.KubeSpawner.container_security_context = {
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
# Some versions of Helm omit null values.
c.KubeSpawner.priority_class_name = facts.get("priority_class", "")
c.KubeSpawner.cpu_guarantee = notebooks["cpu"].get("guarantee")
c.KubeSpawner.cpu_limit = notebooks["cpu"].get("limit")
c.KubeSpawner.mem_guarantee = notebooks["memory"].get("guarantee")
c.KubeSpawner.mem_limit = notebooks["memory"].get("limit")
c.KubeSpawner.node_selector = notebooks["nodeSelector"]
c.KubeSpawner.tolerations = notebooks["tolerations"]
c.KubeSpawner.profile_list = notebooks["profiles"]

# --- homes: one claim for each user
c.KubeSpawner.storage_pvc_ensure = True
c.KubeSpawner.pvc_name_template = "home-{username}"
c.KubeSpawner.storage_capacity = notebooks["storage"]["size"]
c.KubeSpawner.storage_class = notebooks["storage"]["class"] or None
c.KubeSpawner.storage_access_modes = [notebooks["storage"]["accessMode"]]
c.KubeSpawner.volumes = {
    "home": {"name": "home", "persistentVolumeClaim": {"claimName": "{pvc_name}"}},
    # Worker processes of PyTorch exchange data here. The default of 64 MiB is too small.
    "shm": {"name": "shm", "emptyDir": {"medium": "Memory"}},
}
c.KubeSpawner.volume_mounts = {
    "home": {"name": "home", "mountPath": "/home/jovyan"},
    "shm": {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108
}
c.KubeSpawner.working_dir = "/home/jovyan"

# --- settings of the site
for name, settings in facts["config"].items():
    c[name].update(settings)
for extra in sorted(facts_file.parent.glob("extra-*.py")):
    load_subconfig(extra.name, path=str(extra.parent))  # noqa: F821
