"""HTTPS of ``benchpool up``: allowed addresses, certificates and cookie attributes (R17)."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import ssl
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from benchpool_support import direct
from benchpool_support.certificates import issue
from benchpool_support.workstation import COMMAND, RunningWorkstation, start

pytestmark = pytest.mark.slow

HOST = "pool.example.test"


def benchpool(*words: str, state: Path | None = None) -> subprocess.CompletedProcess[str]:
    known = {"BENCHPOOL_STATE": str(state)} if state else {}
    return subprocess.run(
        [*COMMAND, *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **known},
    )


def no_certificate(_: Path) -> list[str]:
    return ["--bind", "0.0.0.0"]


def key_of_another(folder: Path) -> list[str]:
    (folder / "other").mkdir()
    key = issue(folder / "other", HOST).key
    return ["--tls-cert", str(issue(folder, HOST).cert), "--tls-key", str(key)]


def ended(folder: Path) -> list[str]:
    files = issue(folder, HOST, ends=datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC))
    return ["--tls-cert", str(files.cert), "--tls-key", str(files.key)]


def no_file(folder: Path) -> list[str]:
    return ["--tls-cert", str(folder / "none.pem"), "--tls-key", str(issue(folder, HOST).key)]


def no_certificate_in_it(folder: Path) -> list[str]:
    (folder / "notes.pem").write_text("to do: buy a certificate\n")
    return ["--tls-cert", str(folder / "notes.pem"), "--tls-key", str(issue(folder, HOST).key)]


def only_half(folder: Path) -> list[str]:
    return ["--tls-cert", str(issue(folder, HOST).cert)]


def both_kinds(folder: Path) -> list[str]:
    files = issue(folder, HOST)
    given = ["--tls-cert", str(files.cert), "--tls-key", str(files.key)]
    return [*given, "--tls", "self-signed"]


def address_as_host(_: Path) -> list[str]:
    return ["--public-host", f"https://{HOST}/"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (no_certificate, "--bind 0.0.0.0 without encryption exposes passwords and notebooks"),
        (key_of_another, "cannot be used (KEY_VALUES_MISMATCH)"),
        (ended, "expired on 2026-01-31. Give a newer one with --tls-cert"),
        (no_file, "none.pem cannot be read (No such file or directory)"),
        (no_certificate_in_it, "notes.pem"),
        (only_half, "--tls-key is missing"),
        (both_kinds, "are two certificates: give only one of them"),
        (address_as_host, "give a name such as gpus.example.org"),
    ],
)
def test_invalid_tls_options_are_rejected(
    tmp_path: Path, words: Callable[[Path], list[str]], message: str
) -> None:
    state = tmp_path / "state"
    done = benchpool("up", "--state", str(state), "--port", "0", *words(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def cookies_of(answers: list[httpx.Response]) -> list[str]:
    """Return the cookies that were set; deleted cookies have no value."""
    cookies = [cookie for answer in answers for cookie in answer.headers.get_list("set-cookie")]
    return [cookie for cookie in cookies if '=""' not in cookie]


def trusting(cert: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=cert)


@pytest.mark.timeout(400)
def test_self_signed_certificate_covers_all_pages(tmp_path: Path) -> None:
    state = tmp_path / "state"
    arguments = ["--tls", "self-signed"]
    with start(state, arguments=arguments, gpus=2, auth="one-time") as up:
        cert, key = state / "hub" / "tls" / "cert.pem", state / "hub" / "tls" / "key.pem"
        assert up.ready["url"].startswith("https://127.0.0.1:")
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
        der = ssl.PEM_cert_to_DER_cert(cert.read_text())
        fingerprint = up.wait_event("certificate-fingerprint")["value"]
        assert fingerprint == hashlib.sha256(der).digest().hex(":").upper()

        seen: list[httpx.Response] = []
        with direct.Client(
            verify=trusting(cert),
            follow_redirects=True,
            timeout=60,
            event_hooks={"response": [seen.append]},
        ) as browser:
            assert browser.get(up.ready["login_url"]).status_code == 200
            page = browser.get(f"{up.ready['url']}services/benchpool/")
            assert (page.status_code, page.url.scheme) == (200, "https")
        assert {answer.url.scheme for answer in seen} == {"https"}
        check_cookies(cookies_of(seen))
        with pytest.raises(httpx.HTTPError):
            direct.get(up.ready["url"].replace("https", "http"))

        # The commands on this machine work without the certificate.
        done = benchpool("status", "--json", state=state)
        assert done.returncode == 0, done.stderr
    with start(state, arguments=arguments, gpus=2, auth="one-time") as again:
        assert again.wait_event("certificate-fingerprint")["value"] == fingerprint


def check_cookies(cookies: list[str]) -> None:
    assert cookies
    for cookie in cookies:
        assert "secure" in cookie.lower(), cookie
        assert "samesite=lax" in cookie.lower(), cookie


@pytest.mark.timeout(400)
def test_site_certificate_is_served_under_public_host(tmp_path: Path) -> None:
    files = issue(tmp_path, HOST)
    given = ["--tls-cert", str(files.cert), "--tls-key", str(files.key), "--public-host", HOST]
    with start(tmp_path / "state", arguments=given, gpus=2, auth="one-time") as up:
        port = httpx.URL(up.ready["url"]).port
        assert up.ready["url"] == f"https://{HOST}:{port}/"
        assert up.ready["login_url"].startswith(f"https://{HOST}:{port}/hub/login-link?key=")
        check_certificate(up, files.authority)


def check_certificate(up: RunningWorkstation, authority: Path) -> None:
    """Assert that the proxy serves the site's certificate under the site's name."""
    url = httpx.URL(up.ready["url"])
    with direct.Client(verify=trusting(authority)) as client:
        answer = client.get(
            url.copy_with(host="127.0.0.1", path="/hub/api/"),
            headers={"Host": f"{HOST}:{url.port}"},
            extensions={"sni_hostname": HOST},
        )
    assert answer.status_code == 200
    assert json.loads(answer.text)["version"]
