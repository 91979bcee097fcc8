"""Locations in a worker's pod."""

from __future__ import annotations

ROOT = "/benchpool"
"""Scratch folder, deleted with the pod."""
AGENT = ROOT + "/agent.pyz"
PACKAGE = ROOT + "/python/benchpool.zip"
"""Package that every job can import, see ``worker.job_package``."""
WORKER = ROOT + "/worker"
OBJECTS = ROOT + "/objects"
CHECKPOINT = ROOT + "/checkpoint"
OUTPUT = ROOT + "/output"
RESULTS = ROOT + "/results"

CONFIG_FOLDER = "/benchpool-order"
"""Mount of the attempt's Secret."""
CONFIG_FILE = "order"
TOKEN = "token-{index}"  # noqa: S105 (the name of a file)

INDEX = "JOB_COMPLETION_INDEX"
"""Variable in which Kubernetes gives the index of this worker."""
TERMINATION_LOG = "/dev/termination-log"
TERMINATION_LOG_LENGTH = 600
"""Size limit of the agent's last message, in characters.

Kubernetes keeps at most 4096 bytes with the pod, and a character needs up to six of them.
"""
