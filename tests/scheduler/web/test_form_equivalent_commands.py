"""Each form that changes something shows the equivalent CLI command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchpool_scheduler import web
from benchpool_scheduler.contract import twins
from benchpool_scheduler.contract.operations import OPERATIONS

TEMPLATES = Path(web.__file__).parent / "templates"


@pytest.mark.parametrize("file", sorted(TEMPLATES.glob("*.html")), ids=lambda file: file.name)
def test_each_form_sheet_shows_cli_command(file: Path) -> None:
    text = file.read_text()
    for sheet in re.findall(r'class="sheet".*?</details>', text, re.DOTALL):
        assert "typed(" in sheet, sheet[:200]


def test_cli_command_includes_arguments_and_quotes_them() -> None:
    known = {one.name: one for one in OPERATIONS}
    assert twins.command(known["note_node"], "node-3", text="new fan") == (
        "benchpool node note node-3 --text 'new fan'"
    )
    assert twins.command(known["discard"], "7k2m", logs="") == "benchpool discard 7k2m --logs"
    assert twins.command(known["rename"], "7k2m", name="…") == "benchpool rename 7k2m …"
