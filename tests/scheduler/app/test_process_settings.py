"""Settings of the scheduler process from its environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchpool_scheduler.app.serving import cookie_secret
from benchpool_scheduler.app.settings import SchedulerApp

pytestmark = pytest.mark.slow


def test_settings_come_from_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "BENCHPOOL_STATE": "/s",
        "BENCHPOOL_ACCOUNTS": "system",
        "BENCHPOOL_SIMULATED_GPUS": "9",
        "BENCHPOOL_GPU_MODEL": "V100",
        "BENCHPOOL_TRUSTED_PROXIES": "10.0.0.0/24, ingress.example.org",
        "BENCHPOOL_HIDDEN_COOKIES": "_oauth2_proxy,authelia_session",
        "JUPYTERHUB_SERVICE_URL": "http://127.0.0.1:8765/services/benchpool",
        "JUPYTERHUB_SERVICE_PREFIX": "/services/benchpool/",
    }.items():
        monkeypatch.setenv(name, value)
    app = SchedulerApp()
    assert (app.accounts, app.simulated_gpus, app.gpu_model) == ("system", 9, "V100")
    assert app.proxies.hub.holds("127.0.0.1")
    assert app.proxies.before.holds("10.0.0.9")
    assert app.proxies.before.names == ("ingress.example.org",)
    assert app.hidden_cookies == ["_oauth2_proxy", "authelia_session"]
    assert app.configuration_file == "/s/benchpool.yaml"
    assert app.address == ("127.0.0.1", 8765)
    assert app.public_url == app.prefix == "/services/benchpool/"


def test_workers_get_only_listed_variables() -> None:
    app = SchedulerApp(worker_environment=["HTTPS_PROXY", "NOT_SET", "A=b=c"])
    environ = {"HTTPS_PROXY": "http://proxy", "JUPYTERHUB_API_TOKEN": "secret"}
    assert app.worker_variables(environ) == {"HTTPS_PROXY": "http://proxy", "A": "b=c"}


def test_cookie_secret_is_created_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / "scheduler" / "cookie-secret"
    first = cookie_secret(path)
    assert (len(first), cookie_secret(path)) == (32, first)
    assert path.stat().st_mode & 0o777 == 0o600


def test_truncated_cookie_secret_is_recreated(tmp_path: Path) -> None:
    (tmp_path / "cookie-secret").write_bytes(b"short")
    assert len(cookie_secret(tmp_path / "cookie-secret")) == 32


def test_invalid_configuration_ends_start_with_one_sentence(
    tmp_path: Path,
) -> None:
    (tmp_path / "benchpool.yaml").write_text("version: 1\nprojcts: []\n")
    environ = {
        "PATH": os.environ["PATH"],
        "BENCHPOOL_STATE": str(tmp_path),
        "JUPYTERHUB_API_TOKEN": "t",
        "JUPYTERHUB_SERVICE_PREFIX": "/services/benchpool/",
        "JUPYTERHUB_CLIENT_ID": "service-benchpool",
    }
    ended = subprocess.run(
        [sys.executable, "-m", "benchpool_scheduler.app"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 2
    assert "projcts" in ended.stderr
    assert "Traceback" not in ended.stderr
