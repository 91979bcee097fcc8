"""Selection of the files of a folder that are not sent with a job, and why.

There are three sources: built-in rules (caches, environments, version control, likely secrets), the
``.gitignore`` files that git would read here, and ``.benchpoolignore`` files. The latter come last
and may revoke a built-in exclusion (``!.env``). Patterns are git's (gitignore(5)).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from benchpool_scheduler.client.patterns import Patterns

IGNORE_FILE = ".benchpoolignore"

ENVIRONMENT = "a virtual environment"
IGNORED_BY_GIT = "ignored by git"

BUILT_IN: dict[str, str] = {
    ".git/": "version control",
    ".hg/": "version control",
    ".svn/": "version control",
    "node_modules/": "installed packages",
    ".venv/": ENVIRONMENT,
    "__pycache__/": "a cache",
    "*.py[co]": "a cache",
    ".ipynb_checkpoints/": "a cache",
    ".cache/": "a cache",
    ".mypy_cache/": "a cache",
    ".pytest_cache/": "a cache",
    ".ruff_cache/": "a cache",
    ".hypothesis/": "a cache",
    ".tox/": ENVIRONMENT,
    ".nox/": ENVIRONMENT,
    "*.egg-info/": "package metadata",
    ".DS_Store": "a cache",
    # The folder may be a home folder, where programs rewrite these files at any moment.
    ".jupyter/": "settings of a program",
    ".ipython/": "settings of a program",
    ".config/": "settings of a program",
    ".local/": "settings of a program",
    ".npm/": "a cache",
    ".conda/": "settings of a program",
    ".bash_history": "settings of a program",
    ".python_history": "settings of a program",
    "benchpool-results/": "results of earlier jobs",
}
"""Description of each built-in pattern."""

SECRETS: tuple[str, ...] = (
    ".env",
    ".env.*",
    "!.env.example",
    "!.env.template",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.keystore",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    ".netrc",
    "_netrc",
    ".pypirc",
    ".npmrc",
    ".git-credentials",
    ".htpasswd",
    "kubeconfig",
    ".kube/",
    ".aws/",
    ".ssh/",
    ".gnupg/",
    ".docker/",
    "credentials.json",
    "client_secret*.json",
    "service[-_]account*.json",
)
"""Name patterns of files that usually hold keys, tokens or passwords."""

_KEY_MARK = b"PRIVATE KEY-----"
_ENVIRONMENT_MARKS = ("pyvenv.cfg", "conda-meta")


@dataclass(frozen=True, slots=True)
class _Rules:
    """Patterns of one ignore file, which apply below its folder."""

    below: PurePosixPath
    patterns: Patterns

    def decide(self, path: PurePosixPath, folder: bool) -> bool | None:
        """Return True to leave out, False to keep, None if no pattern matches."""
        if not path.is_relative_to(self.below):
            return None
        inside = os.fsencode(path.relative_to(self.below))
        return self.patterns.decide(inside, folder=folder)


class Exclusions:
    """Rules in force during a walk down from a folder.

    Args:
        root: Folder to send.
    """

    def __init__(self, root: Path) -> None:
        top = _repository(root)
        self._base = PurePosixPath(root.relative_to(top).as_posix())
        self._built_in = [(Patterns(line.encode()), why) for line, why in BUILT_IN.items()]
        self._secrets = Patterns("\n".join(SECRETS).encode())
        self._git: list[_Rules] = []
        self._own: list[_Rules] = []
        self._read(self._git, top / ".git" / "info" / "exclude", PurePosixPath())
        self._ignored = self._descend(top)

    def enter(self, folder: Path, inside: PurePosixPath) -> None:
        """Read the ignore files of a folder of the walk."""
        below = self._base / inside
        self._read(self._git, folder / ".gitignore", below)
        self._read(self._own, folder / IGNORE_FILE, below)

    def why(self, inside: PurePosixPath, *, folder: bool) -> str | None:
        """Return why a path is left out, or None if it is sent."""
        path = self._base / inside
        own = _last(self._own, path, folder)
        if own is not None:
            return f"listed in {IGNORE_FILE}" if own else None
        name = os.fsencode(inside.name)
        if self._secrets.decide(name, folder=folder):
            return f"looks like a secret; to send it, write !{inside.name} into {IGNORE_FILE}"
        for patterns, what in self._built_in:
            if patterns.decide(name, folder=folder):
                return what
        return IGNORED_BY_GIT if self._ignored or _last(self._git, path, folder) else None

    def _descend(self, top: Path) -> bool:
        """Read the ignore files above the root. Return whether git ignores the whole root."""
        for folder in [*reversed(self._base.parents), self._base][1:]:
            self._read(self._git, top / folder.parent / ".gitignore", folder.parent)
            if _last(self._git, folder, folder=True):
                return True
        return False

    @staticmethod
    def _read(into: list[_Rules], file: Path, below: PurePosixPath) -> None:
        try:
            text = file.read_bytes()
        except OSError:
            return
        into.append(_Rules(below, Patterns(text)))


def is_environment(folder: Path) -> bool:
    """Return whether a folder is a virtual or conda environment, whatever its name."""
    return any((folder / mark).exists() for mark in _ENVIRONMENT_MARKS)


def holds_private_key(first_bytes: bytes) -> bool:
    """Return whether the beginning of a file is a private key in PEM form."""
    return first_bytes.lstrip().startswith(b"-----BEGIN ") and _KEY_MARK in first_bytes[:200]


def _last(rules: list[_Rules], path: PurePosixPath, folder: bool) -> bool | None:
    """Return the decision of the deepest ignore file with a match, as in git."""
    for rule in reversed(rules):
        decision = rule.decide(path, folder)
        if decision is not None:
            return decision
    return None


def _repository(root: Path) -> Path:
    """Return the top of the git working tree around a folder, or the folder itself."""
    for folder in (root, *root.parents):
        if (folder / ".git").exists():
            return folder
    return root
