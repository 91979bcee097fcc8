"""Configuration of the agent: its attempt, and the index of its worker."""

from __future__ import annotations

import gzip
import json
import os

from . import paths


class AgentConfig:
    """Configuration of an attempt, as written by ``runtime.kubernetes.agent_config``.

    Attributes:
        index: Index of this worker. ``token``: authenticates it to the scheduler.
        home: Folder of the submitter into which results are copied; None sends them.
        cwd: Folder to run in; None runs in a fresh copy of ``files``.
        objects: Hashes of contents that ``argv`` names besides ``files``.
        checkpoint: Checkpoint folder, the same in every attempt. ``carries``: no volume holds the
            folder, so it is sent to the scheduler and fetched from there.
        carry_bytes: Most bytes of checkpoint or results that are sent.
        processes: Processes of one worker, one for each GPU. ``master``: rendezvous host.
    """

    def __init__(self, text: bytes, index: int, token: str) -> None:
        fields = json.loads(text)
        self.index = index
        self.token = token
        self.job: str = fields["job"]
        self.attempt = int(fields["attempt"])
        self.url: str = fields["url"]
        self.argv: list[str] = list(fields["argv"])
        self.env: dict[str, str] = dict(fields["env"])
        self.cwd: str | None = fields["cwd"]
        self.files: list[tuple[str, str, bool]] = [tuple(file) for file in fields["files"]]
        self.objects: list[str] = list(fields["objects"])
        self.home: str | None = fields["home"]
        self.checkpoint: str = fields["checkpoint"]
        self.carries: bool = fields["carries"]
        self.grace_s = float(fields["grace_s"])
        limit = fields["time_limit_s"]
        self.time_limit_s: float | None = None if limit is None else float(limit)
        self.log_bytes = int(fields["log_bytes"])
        self.carry_bytes = int(fields["carry_bytes"])
        self.workers = int(fields["workers"])
        self.processes = int(fields["processes"])
        self.gpus = int(fields["gpus"])
        self.master: str = fields["master"]
        self.port = int(fields["port"])

    @property
    def path(self) -> str:
        """Path of this worker in the scheduler's addresses."""
        return f"{self.job}/{self.attempt}/{self.index}"

    @property
    def hashes(self) -> list[str]:
        """Hashes of all contents to fetch, without duplicates."""
        return sorted({*self.objects, *(sha256 for _, sha256, _ in self.files)})


def read(folder: str = paths.CONFIG_FOLDER) -> AgentConfig:
    """Read the configuration that is mounted in this pod."""
    index = int(os.environ.get(paths.INDEX, "0"))
    with open(os.path.join(folder, paths.CONFIG_FILE), "rb") as file:
        text = gzip.decompress(file.read())
    with open(os.path.join(folder, paths.TOKEN.format(index=index)), encoding="ascii") as file:
        token = file.read().strip()
    return AgentConfig(text, index, token)
