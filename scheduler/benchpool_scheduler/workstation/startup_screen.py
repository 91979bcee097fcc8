"""Output of ``benchpool up``: text for users, or one ready line and then events as JSON lines."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from benchpool_scheduler import __version__
from benchpool_scheduler.errors import BenchpoolError
from benchpool_scheduler.workstation import hints

Ready = Mapping[str, Any]
"""The keys of the ready line (formats, section 4)."""


END_ALL = "down --jobs cancel --servers stop"
_MORE_ADMINS = "add others on the Hub's page Admin"
_SHARED = "(all users share this account's files; --auth pam separates them)"


class StartupScreen(Protocol):
    """Output of progress and events."""

    def note(self, text: str) -> None:
        """Report progress before all servers answer."""

    def ready(self, ready: Ready, extra: Mapping[str, str]) -> None:
        """Report that all servers answer."""

    def event(self, name: str, text: str, **fields: object) -> None:
        """Report a later event."""

    def error(self, error: BenchpoolError) -> None:
        """Report the error that ends the command."""


class JsonScreen:
    """Output of JSON lines, beginning with the ready line."""

    def note(self, text: str) -> None:
        """Print nothing: the first line is the ready line."""

    def ready(self, ready: Ready, extra: Mapping[str, str]) -> None:
        """Print the ready line, then one event for each extra notice."""
        _print(json.dumps(ready))
        for name, value in extra.items():
            self.event(name, "", value=value)

    def event(self, name: str, text: str, **fields: object) -> None:
        """Print an event."""
        line = {"event": name, **({"text": text} if text else {}), **fields}
        _print(json.dumps(line))

    def error(self, error: BenchpoolError) -> None:
        """Print the error object."""
        _print(json.dumps(error.as_json()))


class TextScreen:
    """Output of text for a user at a terminal."""

    def note(self, text: str) -> None:
        """Print progress."""
        _print(f"  … {text}")

    def ready(self, ready: Ready, extra: Mapping[str, str]) -> None:
        """Print an overview for new users, with the link last."""
        state = Path(ready["state"])
        link = hints.command("login-link", state, os.environ)
        rows = [
            ("GPUs", gpus_in_words(ready["gpus"])),
            ("Self-test", self_test_in_words(ready["self_test"])),
            ("State", ready["state"]),
            ("Settings", f"{extra['configuration-file']} (pool and users)"),
            ("Admin", f"{extra['administrator']}, by the link below; {_MORE_ADMINS}"),
            ("Ready in", f"{ready['seconds']:.1f} s"),
            ("Open", ready["url"]),
            *_certificate_rows(extra),
            *_password_rows(extra),
            ("Log in", f"{ready['login_url']}\n{'':12}(works once; {link} creates more)"),
        ]
        body = "\n".join(f"  {name:<10}{text}" for name, text in rows)
        found = (
            ""
            if hints.is_usual(state, os.environ)
            else f"\nIn another terminal {hints.export(state)} makes all commands use it."
        )
        _print(
            f"\nbenchpool {__version__} runs.\n\n{body}\n{found}\nCtrl-C stops the hub. Jobs and "
            f"notebook servers keep running: {hints.command(END_ALL, state, os.environ)} stops "
            "them."
        )

    def event(self, name: str, text: str, **fields: object) -> None:
        """Print the sentence of an event."""
        _print(text)

    def error(self, error: BenchpoolError) -> None:
        """Print the sentence on standard error."""
        with contextlib.suppress(OSError):
            print(f"benchpool: {error.message}", file=sys.stderr, flush=True)


def _password_rows(extra: Mapping[str, str]) -> list[tuple[str, str]]:
    shared = extra.get("shared-password-file")
    if shared is None:
        return []
    admins = f"of administrators: in {extra['admin-password-file']}"
    return [("Password", f"of all users: in {shared}\n{'':12}{admins}\n{'':12}{_SHARED}")]


def _certificate_rows(extra: Mapping[str, str]) -> list[tuple[str, str]]:
    if "certificate-fingerprint" not in extra:
        return []
    made = "created here; browsers warn once. Compare its SHA-256 there with"
    file = f"Programs on other machines trust it with SSL_CERT_FILE: {extra['certificate-file']}"
    fingerprint = extra["certificate-fingerprint"]
    lines = [made, fingerprint[:47], fingerprint[48:], file]
    return [("TLS", f"\n{'':12}".join(lines))]


def gpus_in_words(gpus: list[Mapping[str, Any]]) -> str:
    """Return the GPUs of a ready line in words; simulated ones are marked.

    >>> gpus_in_words([{"uuid": "a", "model": "A100", "simulated": True}] * 2)
    '2 simulated A100: they are counted and allocated, but compute nothing'
    >>> gpus_in_words([{"uuid": "a", "model": "V100", "simulated": False}])
    '1 V100'
    """
    counts = Counter((gpu["model"], gpu["simulated"]) for gpu in gpus)
    words = [f"{n} {'simulated ' if fake else ''}{model}" for (model, fake), n in counts.items()]
    fake = any(gpu["simulated"] for gpu in gpus)
    note = ": they are counted and allocated, but compute nothing" if fake else ""
    return (", ".join(words) or "none") + note


def self_test_in_words(test: Mapping[str, Any]) -> str:
    """Return the outcome of the self-test in words.

    >>> self_test_in_words({"job": "abcdefgh1234", "state": "succeeded", "seconds": 0.8})
    'one small job was sent to the pool and succeeded in 0.8 s (abcdefgh)'
    >>> self_test_in_words({"job": None, "state": "skipped", "seconds": 0, "text": "It waits."})
    'skipped: It waits.'
    """
    if test["job"] is None:
        return f"{test['state']}: {test.get('text', '')}"
    outcome = f"{test['state']} in {test['seconds']:.1f} s ({test['job'][:8]})"
    note = f": {test['text']}" if test.get("text") else ""
    return f"one small job was sent to the pool and {outcome}{note}"


def _print(text: str) -> None:
    # The terminal may be closed while the Hub runs.
    with contextlib.suppress(OSError):
        print(text, flush=True)
