"""Building blocks for a pool with any history: configurations, the machine and the users."""

from __future__ import annotations

from benchpool_scheduler.runtime import NodeFacts
from benchpool_support.pools import story

CONFIGURATIONS = (
    """
version: 1
build: {users: {susan: 2, joe: 1}}
projects:
  - {name: susan, quota: 2, members: [susan]}
  - {name: joe, quota: 2, limit: 4, members: [joe]}
policy: {preemptions_per_hour: 3, preemptions_per_day: 4, min_runtime_s: 60}
""",
    """
version: 1
build: {users: {susan: 2, joe: 1}}
projects:
  - {name: both, quota: 5}
  - {name: joe, parent: both, quota: 3, limit: 4, members: [joe]}
  - {name: susan, parent: both, quota: 2, members: [susan]}
topology: [room]
policy: {usage_weight: 1, usage_half_life_h: 2}
""",
    """
version: 1
build: {users: {susan: 2, joe: 1}, lend_idle: true}
projects:
  - {name: susan, quota: 2, members: [susan]}
  - {name: joe, quota: 2, limit: 6, members: [joe]}
policy: {min_runtime_s: 600}
""",
)

CONFIGURATION = story(CONFIGURATIONS[0])
GPUS = 8
LINKED = tuple(tuple(int(a // 2 == b // 2 and a != b) for b in range(GPUS)) for a in range(GPUS))

MACHINE = (
    NodeFacts("localhost"),
    NodeFacts("localhost", cpus=8.0, memory_gib=64.0),
    NodeFacts("localhost", cpus=3.0, memory_gib=16.0, labels={"room": "east"}),
    NodeFacts("localhost", ready=False, note="cordoned", labels={"room": "west"}),
    NodeFacts("localhost", gpus=tuple(f"GPU-{i}" for i in range(GPUS)), links=LINKED),
)

QUOTAS = {"susan": 2, "joe": 1}
