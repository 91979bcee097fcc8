"""Roles and scopes that benchpool needs from the Hub, loaded by the other files.

Browser users and notebook servers reach the benchpool service. Each needs both the user's own scope
and the server token's. The service reads users, groups and servers, and stops idle servers. The
Hub's own token has the rights of an administrator, because the spawner sends requests in its name
for any user.
"""

import jupyterhub

c = get_config()  # noqa: F821

ACCESS = "access:services!service=benchpool"

if jupyterhub.version_info >= (6,):
    c.JupyterHub.extra_user_scopes = {ACCESS}
    roles = []
else:
    roles = [{"name": "user", "scopes": ["self", ACCESS]}]

# Appended to existing roles, so that this file can be loaded into any Hub.
c.JupyterHub.load_roles.extend(
    [
        *roles,
        {
            "name": "benchpool-service",
            "description": "Requests of the scheduler to the Hub",
            "scopes": [
                "list:users",
                "read:users",
                "read:servers",
                "list:groups",
                "read:groups",
                "read:roles",
                "delete:servers",  # for idle benches, if the site enables that
            ],
            "services": ["benchpool"],
        },
    ]
)

c.Spawner.server_token_scopes = [
    "users:activity!user",
    "access:servers!server",
    "read:users:groups!user",
    "read:users:name!user",
    ACCESS,
]
