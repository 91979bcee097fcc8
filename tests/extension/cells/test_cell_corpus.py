"""Selection of cells for the corpus of notebooks and idioms, compared with traced needs."""

from __future__ import annotations

from benchpool_support.cell_corpus import compared, texts, traces


def test_corpus_traces_match_texts() -> None:
    assert traces().keys() == {each.name for each in texts()}
    assert sum(each.is_notebook for each in texts()) >= 60
    assert sum(not each.is_notebook for each in texts()) >= 600


def test_corpus_selection_misses_no_needed_cell() -> None:
    missed = [
        (one.text.name, one.selected, sorted(one.needed - one.taken))
        for one in compared()
        if one.text.is_notebook and not one.needed <= one.taken
    ]
    assert missed == []


def test_corpus_selection_includes_mostly_needed_cells() -> None:
    every = [one for one in compared() if one.text.is_notebook]
    right_s = sum(one.seconds[number] for one in every for number in one.needed & one.taken)
    taken_s = sum(one.seconds[number] for one in every for number in one.taken)
    right = sum(len(one.needed & one.taken) for one in every)
    taken = sum(len(one.taken) for one in every)
    assert right / taken >= 0.87
    assert right_s / taken_s >= 0.80


def test_corpus_idioms_never_differ_silently() -> None:
    every = [one for one in compared() if not one.text.is_notebook]
    assert [one.text.name for one in every if one.verdict == "silently different"] == []
    assert {one.text.name for one in every if one.verdict == "told"} == TOLD


TOLD = {  # random draws, first weights, files on disk and state of the shell
    "estimators: a dump and a load",
    "settings_and_magics: a torch layer draws",
    "settings_and_magics: a folder is entered",
    "mixed: a shell line makes a file",
    "state_of_objects: the last result",
    "exercises: json lines appended to a file",
    "exercises: numpy file on disk",
    "exercises: temp folder object",
    "research_objects: an event of the shell",
    "draws_and_aliases: draws by a projection",
    "draws_and_aliases: draws by a keras initialiser",
    "loaders: a loader of a book's function",
    "loaders: a pass with an untrained model",
}
