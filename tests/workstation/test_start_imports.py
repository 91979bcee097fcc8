"""A start imports only the modules that it needs."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import pytest

from benchpool_scheduler.workstation import jupyter

LOADED = "import json, sys; print(json.dumps(sorted(sys.modules)))"


def loaded_by(code: str) -> set[str]:
    """Return the modules loaded in a new interpreter after this code."""
    command = [sys.executable, "-c", f"{code}\n{LOADED}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return set(json.loads(done.stdout))


def test_up_does_not_import_service() -> None:
    modules = loaded_by("import benchpool_scheduler.workstation.up")
    assert "benchpool_scheduler.app.start_faults" in modules
    assert not modules & {
        *("benchpool_scheduler.service", "benchpool_scheduler.api", "benchpool_scheduler.web"),
        *("jupyterhub", "sqlalchemy", "aiohttp", "tornado"),
    }


def test_command_line_imports_apply_lazily() -> None:
    modules = loaded_by("import benchpool_scheduler.cli")
    assert "benchpool_scheduler.cli.pool_verbs" in modules
    assert not modules & {"benchpool_scheduler.cli.applying", "benchpool_scheduler.core", "ruamel"}


@pytest.mark.slow
@pytest.mark.parametrize("program", ["jupyterhub.app", "jupyter_server.serverapp"])
def test_jupyter_program_starts_without_uri_grammars(program: str) -> None:
    modules = loaded_by(
        "from benchpool_scheduler.workstation.jupyter import load_jsonschema\n"
        f"load_jsonschema()\nimport {program}"
    )
    assert {"jsonschema", program} <= modules
    assert not modules & {"rfc3987_syntax", "lark"}


def test_uri_grammars_can_be_imported_later() -> None:
    jupyter.load_jsonschema()
    assert sys.modules.get("rfc3987_syntax", jupyter) is not None
    assert importlib.util.find_spec("rfc3987_syntax") is not None


def test_program_runs_like_python_module() -> None:
    command = jupyter.command("json.tool", "--compact")
    done = subprocess.run(
        command, input='{"a": [1, 2]}', capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == '{"a":[1,2]}\n'
    wrong = subprocess.run([*command, "--no"], input="", capture_output=True, text=True, timeout=60)
    assert wrong.returncode == 2
