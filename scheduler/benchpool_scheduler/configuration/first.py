"""Default configuration, written at the first start."""

from __future__ import annotations

import json

_TEXT = """\
# benchpool: allocation of GPUs. Read at start. `benchpool config check FILE` checks a file,
# `benchpool config apply FILE` applies a changed file without a restart.
version: 1
build:                    # GPUs of notebook servers: fixed, always available to their owner
  default: 0              # users without another entry
  groups: {{}}              # members of a JupyterHub group, e.g. {{staff: 1}}
  users: {{{user}: {bench}}}
  reserve: auto           # GPUs kept for benches: auto = the sum over all users
  oversubscribe: false    # reject quotas that add up to more GPUs than exist
  lend_idle: false
projects:                 # all other GPUs, shared by guaranteed quota
  - name: {user}
    quota: {quota}
    members: [{user}]
    leads: [{user}]
policy:
  grace_s: 30             # time for a checkpoint between the notice and the end
# hanging:                # notify owners of jobs without progress, output, processor and GPU use
#   after_s: 1800         # after 30 minutes; act: requeue also stops and retries them
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
