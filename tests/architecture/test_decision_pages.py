"""Decision pages: each number is unique, and the index lists every page."""

from __future__ import annotations

from collections import defaultdict

from benchpool_support import checkout

DECISIONS = checkout.ROOT / "docs" / "decisions"
PAGES = sorted(
    path.stem for path in DECISIONS.glob("*.md") if path.stem not in {"index", "template"}
)


def test_decision_numbers_are_unique() -> None:
    by_number = defaultdict(list)
    for page in PAGES:
        by_number[page.split("-")[0]].append(page)
    assert [pages for pages in by_number.values() if len(pages) > 1] == []


def test_decision_page_begins_with_four_digits() -> None:
    assert [page for page in PAGES if not (page[:4].isdecimal() and page[4:5] == "-")] == []


def test_decision_title_has_page_number() -> None:
    texts = {page: (DECISIONS / f"{page}.md").read_text("utf-8") for page in PAGES}
    assert [page for page, text in texts.items() if f"\n# {page[:4]} " not in f"\n{text}"] == []


def test_decision_index_lists_pages_in_order() -> None:
    lines = (DECISIONS / "index.md").read_text("utf-8").splitlines()
    assert [line for line in lines if line[:4].isdecimal()] == PAGES
