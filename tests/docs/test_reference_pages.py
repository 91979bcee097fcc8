"""The reference pages agree with the code."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

from benchpool_scheduler.configuration import loader

DOCS = Path(__file__).resolve().parents[2] / "docs"


def generator() -> ModuleType:
    """Import docs/generate.py."""
    spec = importlib.util.spec_from_file_location("benchpool_docs_generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_pages_are_current() -> None:
    for name, text in generator().pages().items():
        assert (DOCS / "reference" / name).read_text() == text, name


def test_every_configuration_key_is_documented() -> None:
    page = (DOCS / "reference" / "configuration.md").read_text()
    assert [key for key in sorted(loader.KEYS) if f"`{key}`" not in page] == []


def test_every_link_of_top_level_documents_resolves() -> None:
    for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"):
        text = (DOCS.parent / name).read_text()
        links = re.findall(r"\]\((?!https?:)([^)#]+)", text)
        assert [link for link in links if not (DOCS.parent / link).exists()] == [], name
