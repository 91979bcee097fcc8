"""Where things lie in a worker's pod."""

from __future__ import annotations

ROOT = "/benchpool"
"""The scratch folder: gone with the pod."""
AGENT = ROOT + "/agent.pyz"
PACKAGE = ROOT + "/python/benchpool.zip"
"""What every job can import of us, see ``worker.job_package``."""
WORKER = ROOT + "/worker"
OBJECTS = ROOT + "/objects"
CHECKPOINT = ROOT + "/checkpoint"
OUTPUT = ROOT + "/output"
RESULTS = ROOT + "/results"

CONFIG_FOLDER = "/benchpool-order"
"""The Secret of the attempt."""
CONFIG_FILE = "order"
TOKEN = "token-{index}"  # noqa: S105 (the name of a file)

INDEX = "JOB_COMPLETION_INDEX"
"""Variable in which Kubernetes says which worker this is."""
TERMINATION_LOG = "/dev/termination-log"
TERMINATION_LOG_LENGTH = 600
"""What the agent says at its end is kept with the pod: 4096 bytes at most, each character of the
sentence up to six of them."""
