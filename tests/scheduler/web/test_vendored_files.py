"""What pages use of others lies in the wheel as it was published, with its licence."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

from benchpool_scheduler.web.routes import STATIC

VENDOR = STATIC / "vendor"


def test_every_vendored_file_is_named_and_is_what_was_published() -> None:
    told = {
        f"{one['folder']}/{file}": digest
        for one in json.loads((VENDOR / "manifest.json").read_text())
        for file, digest in one["sha256"].items()
    }
    found = {
        path.relative_to(VENDOR).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.is_file() and path.name != "manifest.json"
    }
    assert found == told


def test_each_has_its_licence_beside_it() -> None:
    for one in json.loads((VENDOR / "manifest.json").read_text()):
        assert one["licence"] in ("MIT", "BSD-3-Clause", "ISC", "Apache-2.0")
        assert "LICENSE" in one["sha256"]


def test_templates_name_only_files_that_there_are() -> None:
    templates = Path(STATIC.parent, "templates").glob("*.html")
    named = {
        file for one in templates for file in re.findall(r"static/([\w./-]+)", one.read_text())
    }
    assert {file for file in named if not (STATIC / file).is_file()} == set()
