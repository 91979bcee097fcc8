"""JupyterHub on one machine, as started by `benchpool up`.

Declarative: every path, port and secret comes from the facts file that `benchpool up` writes into
its state folder (readable for its owner only) and names in BENCHPOOL_HUB_FACTS.
"""

import json
import os
from pathlib import Path

from jupyterhub import version_info
from jupyterhub.utils import subdomain_hook_idna

from benchpool_scheduler.contract.forwarding import LOOPBACK, Proxies, listed
from benchpool_spawner import patient_hub, watched_services
from benchpool_spawner.landing import default_url
from benchpool_spawner.logins import LoginReports

c = get_config()  # noqa: F821
# The path is explicit, because a sub-configuration that is not found is skipped silently.
load_subconfig("roles.py", path=str(Path(__file__).parent))  # noqa: F821

facts = json.loads(Path(os.environ["BENCHPOOL_HUB_FACTS"]).read_text())
paths, ports, secrets = facts["paths"], facts["ports"], facts["secrets"]
service_url = f"http://127.0.0.1:{ports['scheduler']}/services/benchpool"

# --- addresses and files
scheme = "https" if facts["tls"] else "http"
c.JupyterHub.bind_url = f"{scheme}://{facts['bind']}:{ports['public']}/"
if facts["tls"]:
    c.JupyterHub.ssl_cert = facts["tls"]["cert"]
    c.JupyterHub.ssl_key = facts["tls"]["key"]
if facts["subdomains"]:
    # Each user's servers have their own host name. The pool stays on the Hub's host, because the
    # Hub's links to it would lack the port.
    public = f"{scheme}://{facts['public_host']}:{ports['public']}"
    c.JupyterHub.subdomain_host = public
    c.JupyterHub.subdomain_hook = lambda name, domain, kind: (
        domain if kind == "service" else subdomain_hook_idna(name, domain, kind)
    )
    c.JupyterHub.template_vars = {"services_beside_hub": True}
    # A server's page may set cookies for its parent domains. The prefix protects the Hub's cookies.
    c.JupyterHub.cookie_host_prefix_enabled = bool(facts["tls"])
c.JupyterHub.tornado_settings = {
    "cookie_options": facts["cookie_options"],
    # `benchpool up` recognises its own Hub by them. Facts of release 0.1 have none.
    "headers": facts.get("headers", {}),
}
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{ports['hub']}/hub/"
c.JupyterHub.db_url = f"sqlite:///{paths['hub']}/jupyterhub.sqlite"
# Timeout for SQLite's lock, in seconds. JupyterHub's default is 5, after which it answers 403. The
# first argument is JupyterHub's own default.
c.JupyterHub.db_kwargs = {"connect_args": {"check_same_thread": False, "timeout": 30}}
c.JupyterHub.cookie_secret_file = f"{paths['hub']}/cookie_secret"
c.ConfigurableHTTPProxy.command = facts["proxy_command"]
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{ports['proxy_api']}"
c.ConfigurableHTTPProxy.pid_file = f"{paths['hub']}/proxy.pid"
c.JupyterHub.template_paths = [paths["templates"]]
c.JupyterHub.default_url = default_url

# --- users
c.JupyterHub.authenticator_class = {
    "one-time": "benchpool_spawner.login_link.OneTimeAuthenticator",
    "shared-password": "benchpool_spawner.login_link.SharedPasswordLinkAuthenticator",
    "pam": "benchpool_spawner.login_link.PAMLinkAuthenticator",
}[facts["auth"]]
c.LoginLinks.login_keys = paths["login_keys"]
# The scheduler's audit trail records every login and logout, and failed logins.
proxies = Proxies(listed(LOOPBACK), listed(facts["trusted_proxies"]))
reports = LoginReports(service_url, secrets["hub_token"], proxies)
c.Authenticator.post_auth_hook = reports
c.LoginLinks.reports = reports
reports.report_logouts()
c.Authenticator.admin_users = {facts["admin"]}
c.Authenticator.allowed_users = {facts["admin"]}
c.Authenticator.allow_all = facts["auth"] != "one-time"
# A name becomes a folder below homes/ and part of addresses.
c.Authenticator.username_pattern = r"^[a-z0-9_][a-z0-9_.@-]{0,63}$"
c.SharedPasswordAuthenticator.user_password = secrets["user_password"]
c.SharedPasswordAuthenticator.admin_password = secrets["admin_password"]

# --- notebook servers
c.JupyterHub.spawner_class = (
    "benchpool_spawner.local.LocalGPUPAMSpawner"
    if facts["auth"] == "pam"
    else "benchpool_spawner.local.LocalGPUSpawner"
)
c.QuotaMixin.scheduler_url = service_url
c.QuotaMixin.scheduler_token = secrets["hub_token"]
c.SimpleLocalProcessSpawner.home_dir_template = f"{paths['homes']}/{{username}}"
c.Spawner.cmd = facts["singleuser"]
c.Spawner.args = [
    # The news pop-up would cover benchpool's button, and contacts hosts outside this machine.
    "--LabApp.news_url=None",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    *(["--allow-root"] if facts["allow_root"] else []),
]
c.Spawner.default_url = "/lab"
c.Spawner.mem_limit = facts["servers"]["memory"]
c.Spawner.cpu_limit = facts["servers"]["cpus"]
c.SandboxedMixin.sandbox = facts["servers"]["sandbox"]
c.SandboxedMixin.sandbox_folder = paths["server_tmp"]
c.Spawner.environment = {
    "PATH": facts["path"],
    # Login shells reset PATH. They find the same programs by this: see .profile in the homes.
    "BENCHPOOL_BIN": facts["path"].partition(os.pathsep)[0],
    # Settings for every JupyterLab of this Hub: jupyter/labconfig beside this file.
    "JUPYTER_CONFIG_PATH": paths["jupyter_config"],
}
# A start ends with the first answer, or fails without progress. No timeout applies.
c.Spawner.start_timeout = 24 * 3600
c.Spawner.http_timeout = 90
c.Spawner.poll_interval = 3
# Failed starts of servers never end the Hub of one machine, which all users depend on.
c.Spawner.consecutive_failure_limit = 0
c.JupyterHub.allow_named_servers = True
# Kernels survive a restart of the Hub.
c.JupyterHub.cleanup_servers = False

# Spawners store the GPUs of each server in the Hub, from which lost bench records are restored.
c.JupyterHub.load_roles.append(
    {
        "name": "benchpool-benches",
        "description": "The scheduler reads which GPUs notebook servers hold",
        "scopes": ["admin:server_state"],
        "services": ["benchpool"],
    }
)

# --- the scheduler, started and watched by the Hub
# `benchpool up` watches the progress of a start. The Hub's own timeout would end a slow one.
no_clock = {"timeout": 24 * 3600} if version_info >= (6,) else {}
if version_info < (6,):
    patient_hub.wait_for_services()
watched_services.watch()
c.JupyterHub.services = [
    {
        "name": "benchpool",
        **no_clock,
        "url": f"http://127.0.0.1:{ports['scheduler']}",
        "command": facts["scheduler_command"],
        "environment": facts["scheduler_environment"],
        "cwd": paths["state"],
        "oauth_no_confirm": True,
        "oauth_client_allowed_scopes": ["read:users:groups!user", "read:users:name!user"],
    },
    # Set by `admin` instead of a role in load_roles: naming the role there would take it at the
    # next start from every administrator made on the Hub's admin page.
    {"name": "benchpool-hub", "api_token": secrets["hub_token"], "admin": True, "display": False},
]
