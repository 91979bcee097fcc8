"""Git commit of a folder and the diff of its files, without secrets."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from benchpool_scheduler.client.exclusions import SECRETS
from benchpool_scheduler.contract.run_environment import Commit

DIFFERENCE = 256 << 10
"""Maximum length of the recorded diff, in characters."""

GIT_S = 20.0
_GIT = ("git", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false")
_LEAVE_OUT = [
    f":(exclude,glob)**/{each.rstrip('/')}" + ("/**" if each.endswith("/") else "")
    for each in SECRETS
    if not each.startswith("!")
]
_ASSIGNED = re.compile(
    r"(?i)\b([\w-]*(?:api_?key|token|secret|passw(?:or)?d|credential)[\w-]*['\"]?\s*[:=]\s*)\S.*"
)
_KEYS = re.compile(r"\b(?:hf_|gh[pousr]_|github_pat_|sk-|xox[abp]-|AKIA|glpat-)[\w-]{12,}")


def commit_of(folder: Path) -> Commit | None:
    """Return the commit of a folder, or None outside a repository or without git."""
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return None
    branch = _git(folder, "symbolic-ref", "--short", "-q", "HEAD")
    words = ("diff", "--no-ext-diff", "--no-textconv", "--no-color", "HEAD", "--")
    difference = without_secrets(_git(folder, *words, ":/", *_LEAVE_OUT) or "")
    return Commit(
        commit.strip(),
        branch.strip() if branch else None,
        difference[:DIFFERENCE],
        len(difference) > DIFFERENCE,
    )


def without_secrets(text: str) -> str:
    """Return text with strings that look like keys and passwords removed.

    >>> without_secrets("+WANDB_API_KEY = 'abc'; x = 1")
    '+WANDB_API_KEY = …'
    >>> without_secrets("+login('hf_abcdefghijklmnop')"), without_secrets("+tokens = 3")
    ("+login('…')", '+tokens = …')
    """
    return _KEYS.sub("…", _ASSIGNED.sub(r"\1…", text))


def _git(folder: Path, *words: str) -> str | None:
    return _answer([*_GIT, "-C", str(folder), *words])


def _answer(words: Sequence[str]) -> str | None:
    environ = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(
            words,
            env=environ,
            capture_output=True,
            timeout=GIT_S,
            check=True,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace")
