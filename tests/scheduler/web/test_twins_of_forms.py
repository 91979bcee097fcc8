"""Every form of a page that changes something says what to type in a terminal for the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchpool_scheduler import web
from benchpool_scheduler.contract import twins
from benchpool_scheduler.contract.operations import OPERATIONS

TEMPLATES = Path(web.__file__).parent / "templates"


@pytest.mark.parametrize("file", sorted(TEMPLATES.glob("*.html")), ids=lambda file: file.name)
def test_each_sheet_that_is_filled_in_has_its_command(file: Path) -> None:
    text = file.read_text()
    for sheet in re.findall(r'class="sheet".*?</details>', text, re.DOTALL):
        assert "typed(" in sheet, sheet[:200]


def test_a_command_names_what_the_verb_takes_and_quotes_it() -> None:
    known = {one.name: one for one in OPERATIONS}
    assert twins.command(known["note_node"], "node-3", text="new fan") == (
        "benchpool node note node-3 --text 'new fan'"
    )
    assert twins.command(known["discard"], "7k2m", logs="") == "benchpool discard 7k2m --logs"
    assert twins.command(known["rename"], "7k2m", name="…") == "benchpool rename 7k2m …"
