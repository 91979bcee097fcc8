"""The front end's wire types are those of the OpenAPI documents."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def generator() -> ModuleType:
    """Import docs/front_end_types.py."""
    path = ROOT / "docs" / "front_end_types.py"
    spec = importlib.util.spec_from_file_location("benchpool_docs_front_end_types", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_committed_types_match_documents() -> None:
    assert not generator().are_stale()


@pytest.mark.slow
def test_types_of_changed_document_are_stale(tmp_path: Path) -> None:
    document = tmp_path / "openapi.json"
    text = (ROOT / "docs" / "reference" / "openapi-jupyter.json").read_text()
    document.write_text(text)
    config = tmp_path / "redocly.yaml"
    config.write_text(
        "apis:\n  page@v1:\n    root: openapi.json\n    x-openapi-ts:\n      output: page.ts\n"
    )
    types = generator()
    types.write(config)
    assert not types.are_stale(config)
    document.write_text(text.replace('"interpreter"', '"python"'))
    assert types.are_stale(config)
