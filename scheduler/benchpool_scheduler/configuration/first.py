"""Default configuration, written at the first start."""

from __future__ import annotations

import json

_TEXT = """\
# benchpool: who has which GPUs. Checked at start; `benchpool config check FILE` only looks,
# `benchpool config apply FILE` puts a changed file in force without a restart.
version: 1
build:                    # GPUs of notebook servers: fixed, always there for their owner
  default: 0              # of a user whom nothing else names
  groups: {{}}              # of the members of a JupyterHub group, e.g. {{staff: 1}}
  users: {{{user}: {bench}}}
  reserve: auto           # GPUs kept for benches: auto = the sum over all users
  oversubscribe: false    # refuse quotas that add up to more than there is
  lend_idle: false
projects:                 # all other GPUs, shared by guaranteed quota
  - name: {user}
    quota: {quota}
    members: [{user}]
    leads: [{user}]
policy:
  grace_s: 30             # time for a checkpoint between the notice and the end
# hanging:                # tell owners of jobs without progress, output, processor and GPU use
#   after_s: 1800         # for 30 minutes; act: requeue also stops them and tries them again
"""


def default_configuration(user: str, gpus: int) -> str:
    """Return the configuration for a machine with ``gpus`` GPUs and its first user.

    The user gets a bench GPU if there is more than one, and a project with the rest.

    >>> from benchpool_scheduler.configuration.loader import load
    >>> first = load(default_configuration("susan", 8))
    >>> first.build.users["susan"], first.projects[0].project.quota
    (1, 7)
    """
    bench = 1 if gpus > 1 else 0
    # A JSON string is a YAML string, for every name.
    return _TEXT.format(user=json.dumps(user, ensure_ascii=True), bench=bench, quota=gpus - bench)
