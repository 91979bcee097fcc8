"""Third-party files of the pages are in the wheel as published, with their licences."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

from benchpool_scheduler.web.routes import STATIC

VENDOR = STATIC / "vendor"


def test_vendored_files_match_published_digests() -> None:
    published = {
        f"{one['folder']}/{file}": digest
        for one in json.loads((VENDOR / "manifest.json").read_text())
        for file, digest in one["sha256"].items()
    }
    found = {
        path.relative_to(VENDOR).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.is_file() and path.name != "manifest.json"
    }
    assert found == published


def test_vendored_files_include_licence() -> None:
    for one in json.loads((VENDOR / "manifest.json").read_text()):
        assert one["licence"] in ("MIT", "BSD-3-Clause", "ISC", "Apache-2.0")
        assert "LICENSE" in one["sha256"]


def test_templates_reference_existing_files() -> None:
    templates = Path(STATIC.parent, "templates").glob("*.html")
    named = {
        file for one in templates for file in re.findall(r"static/([\w./-]+)", one.read_text())
    }
    assert {file for file in named if not (STATIC / file).is_file()} == set()
