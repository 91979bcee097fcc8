"""Host names that the resolver rejects, and paths that are not valid UTF-8."""

from __future__ import annotations

import datetime
import json
import os
import socket
import subprocess
from pathlib import Path

import pytest

from benchpool_scheduler.client import elsewhere
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.workstation import down, hub_facts, login_keys, options, state, tls
from benchpool_support.workstation import COMMAND

LONGEST = "h" * 64
"""Longest host name on Linux; the resolver accepts 63 characters between two dots."""
UNTYPED = "state-\udcff"
"""A name in Python whose last byte is not valid UTF-8."""


@pytest.mark.parametrize(
    ("name", "known"), [(LONGEST, True), ("a..b", True), ("m\udcff", False), ("two words", False)]
)
def test_unresolvable_host_name_does_not_prevent_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, known: bool
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: name)
    given = options.UpOptions(tmp_path, public_host="gpus.example.org", tls="self-signed")
    assert (name in hub_facts.hosts(given)) is known
    assert (name in tls.names(given)) is known
    certificate = tls.find(given, tmp_path / "tls", datetime.datetime.now(datetime.UTC))
    assert certificate is not None
    # The proxy loads the certificate this way.
    tls.trusting(certificate).load_cert_chain(certificate.cert, certificate.key)


def test_state_folder_with_invalid_utf8_is_rejected(tmp_path: Path) -> None:
    folder = tmp_path / UNTYPED
    for use in (
        lambda: state.prepare(folder),
        lambda: down.run(options.DownOptions(folder)),
        lambda: login_keys.for_running(folder),
    ):
        with pytest.raises(InvalidInput, match="contains characters that are not UTF-8") as refused:
            use()
        assert refused.value.field == "state"
        refused.value.message.encode()
    assert not folder.exists()


def test_invalid_utf8_path_is_rejected_with_its_option(tmp_path: Path) -> None:
    bad, good = tmp_path / UNTYPED, tmp_path
    for field, given in (
        ("config", options.UpOptions(good, config=bad)),
        ("tls-cert", options.UpOptions(good, tls_cert=bad, tls_key=good)),
        ("tls-key", options.UpOptions(good, tls_cert=good, tls_key=bad)),
    ):
        with pytest.raises(InvalidInput, match="contains characters that are not UTF-8") as refused:
            options.check(given)
        assert refused.value.field == field


@pytest.mark.parametrize("json_", [False, True])
@pytest.mark.parametrize(("verb", "status"), [("up", 2), ("down", 2), ("jobs", 4)])
def test_command_with_invalid_utf8_state_folder_fails(
    tmp_path: Path, verb: str, status: int, json_: bool
) -> None:
    folder = os.fsencode(tmp_path) + b"/state-\xff"
    known = {name: word for name, word in os.environb.items() if b"BENCHPOOL" not in name}
    done = subprocess.run(
        [*COMMAND, verb, *(["--json"] if json_ else [])],
        capture_output=True,
        timeout=120,
        check=False,
        env={**known, b"BENCHPOOL_STATE": folder, b"XDG_STATE_HOME": os.fsencode(tmp_path)},
    )
    assert done.returncode == status
    assert b"Traceback" not in done.stderr
    if json_:
        assert json.loads(done.stdout)["error"]["message"]
    else:
        assert b"state-\\udcff" in done.stderr


def test_instance_note_keeps_invalid_utf8_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elsewhere, "notes", lambda: tmp_path / "notes")
    elsewhere.remember(tmp_path / UNTYPED)
    (note,) = (tmp_path / "notes").iterdir()
    assert note.read_bytes() == bytes(tmp_path) + b"/state-\xff"
    assert elsewhere.running() == []
    elsewhere.forget(tmp_path / UNTYPED)
    assert not list((tmp_path / "notes").iterdir())
