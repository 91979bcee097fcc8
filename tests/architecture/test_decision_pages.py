"""Pages of decisions: a number is one page's, and the index has every page."""

from __future__ import annotations

from collections import defaultdict

from benchpool_support import checkout

DECISIONS = checkout.ROOT / "docs" / "decisions"
PAGES = sorted(
    path.stem for path in DECISIONS.glob("*.md") if path.stem not in {"index", "template"}
)


def test_no_two_pages_have_one_number() -> None:
    by_number = defaultdict(list)
    for page in PAGES:
        by_number[page.split("-")[0]].append(page)
    assert [pages for pages in by_number.values() if len(pages) > 1] == []


def test_every_page_begins_with_a_number_of_four_digits() -> None:
    assert [page for page in PAGES if not (page[:4].isdecimal() and page[4:5] == "-")] == []


def test_the_title_of_a_page_has_its_number() -> None:
    texts = {page: (DECISIONS / f"{page}.md").read_text("utf-8") for page in PAGES}
    assert [page for page, text in texts.items() if f"\n# {page[:4]} " not in f"\n{text}"] == []


def test_the_index_has_every_page_once_in_their_order() -> None:
    lines = (DECISIONS / "index.md").read_text("utf-8").splitlines()
    assert [line for line in lines if line[:4].isdecimal()] == PAGES
