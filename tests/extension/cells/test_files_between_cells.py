"""A file that one cell writes and another reads is told, and its writer can be ticked."""

from __future__ import annotations

import pytest

from benchpool_support.cells import chosen, included


def said(*sources: str) -> list[str]:
    return [each.text for each in chosen(*sources).problems]


@pytest.mark.parametrize(
    ("writes", "reads", "which"),
    [
        ("torch.save(1, 'best.pt')", "torch.load('best.pt')", "best.pt"),
        ("joblib.dump(1, folder / 'a.joblib')", "joblib.load(folder / 'a.joblib')", "a.joblib"),
        ("open(path, 'w').write('x')", "print(open(path).read())", "path"),
        ("np.save('x.npy', 1)", "def load():\n    return np.load('x.npy')\nload()", "x.npy"),
        ("(root / 'a.txt').write_text('x')", "print([*root.iterdir()])", "root"),
    ],
)
def test_it_is_told_by_what_both_name(writes: str, reads: str, which: str) -> None:
    before = (
        "import torch, joblib, numpy as np\nfrom pathlib import Path\n"
        "path = folder = root = Path('results')"
    )
    told = (
        f"cell 2 writes a file (`{which}`) that cell 3 reads, and stays out: the job reads it as "
        "it is; tick that cell to write it anew"
    )
    assert told in said(before, writes, reads) or included(chosen(before, writes, reads)) == [
        0,
        1,
        2,
    ]


def test_the_last_writer_that_goes_along_is_enough() -> None:
    cells = [
        "import numpy as np",
        "np.save('x.npy', 1)",
        "np.save('x.npy', 2)\nn = 1",
        "np.load('x.npy')\nn",
    ]
    assert said(*cells) == []


def test_another_file_and_a_reader_alone_are_no_matter() -> None:
    assert said("import numpy as np", "np.save('x.npy', 1)", "np.load('y.npy')") == []
    assert said("import pandas as pd", "pd.read_csv('x.csv')") == []


@pytest.mark.parametrize(
    ("makes", "uses", "name"),
    [
        ("os.makedirs('runs/a', exist_ok=True)", "open('runs/a/log.txt', 'w')", "runs/a"),
        ("out = Path('x')\n(out / 'models').mkdir()", "(out / 'm.pt').write_text('')", None),
        ("os.mkdir(place)", "def keep():\n    open(place + '/log', 'w')\nkeep()", "place"),
        ("place.mkdir(exist_ok=True)", "torch.save(1, place / 'best.pt')", None),
    ],
)
def test_who_makes_a_folder_goes_along_with_who_uses_it(
    makes: str, uses: str, name: str | None
) -> None:
    """An empty folder is not sent: a training that ends with a save would end with an error."""
    before = "import os, torch\nfrom pathlib import Path\nplace = Path('results')"
    found = chosen(before, makes, uses)
    assert included(found) == [0, 1, 2]
    if name is not None:
        assert found.cells[1].why == f"makes the folder `{name}`"


@pytest.mark.parametrize(
    ("makes", "uses"),
    [
        ("os.makedirs('runs')", "open('runs.txt', 'w')"),
        ("os.makedirs('runs')", "print('runs/x')"),
        ("os.makedirs('runs')\nmodel.fit(x)", "open('runs/x', 'w')"),
    ],
)
def test_a_folder_of_others_and_one_beside_a_training_stay_out(makes: str, uses: str) -> None:
    assert included(chosen("import os", makes, uses)) in ([0, 2], [2])
