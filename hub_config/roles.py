"""Who may do what: the Hub's roles and scopes that benchpool needs, loaded by the other files.

Browser users and notebook servers reach the benchpool service (each needs both: the user's own
scope and the server token's), the service reads users, groups and servers and stops
idle ones, and the Hub's own
token may do what administrators may, because the spawner asks in its name for any user.
"""

import jupyterhub

c = get_config()  # noqa: F821

ACCESS = "access:services!service=benchpool"

if jupyterhub.version_info >= (6,):
    c.JupyterHub.extra_user_scopes = {ACCESS}
    roles = []
else:
    roles = [{"name": "user", "scopes": ["self", ACCESS]}]

# Added to what others have configured, so that this file can be loaded into any Hub.
c.JupyterHub.load_roles.extend(
    [
        *roles,
        {
            "name": "benchpool-service",
            "description": "What the scheduler asks the Hub",
            "scopes": [
                "list:users",
                "read:users",
                "read:servers",
                "list:groups",
                "read:groups",
                "read:roles",
                "delete:servers",  # idle benches, where the site has that switched on
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
