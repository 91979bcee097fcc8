"""Files written by one cell and read by another: reported, or their writers included."""

from __future__ import annotations

import pytest

from benchpool_support.cells import chosen, included


def problems(*sources: str) -> list[str]:
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
def test_written_file_read_by_later_cell_is_reported(writes: str, reads: str, which: str) -> None:
    before = (
        "import torch, joblib, numpy as np\nfrom pathlib import Path\n"
        "path = folder = root = Path('results')"
    )
    problem = (
        f"cell 2 writes a file (`{which}`) that cell 3 reads, and is not included: the job reads "
        "the existing file; tick cell 2 to write it again"
    )
    assert problem in problems(before, writes, reads) or included(
        chosen(before, writes, reads)
    ) == [
        0,
        1,
        2,
    ]


def test_last_included_writer_of_file_suffices() -> None:
    cells = [
        "import numpy as np",
        "np.save('x.npy', 1)",
        "np.save('x.npy', 2)\nn = 1",
        "np.load('x.npy')\nn",
    ]
    assert problems(*cells) == []


def test_unrelated_file_and_lone_reader_are_not_reported() -> None:
    assert problems("import numpy as np", "np.save('x.npy', 1)", "np.load('y.npy')") == []
    assert problems("import pandas as pd", "pd.read_csv('x.csv')") == []


@pytest.mark.parametrize(
    ("makes", "uses", "name"),
    [
        ("os.makedirs('runs/a', exist_ok=True)", "open('runs/a/log.txt', 'w')", "runs/a"),
        ("out = Path('x')\n(out / 'models').mkdir()", "(out / 'm.pt').write_text('')", None),
        ("os.mkdir(place)", "def keep():\n    open(place + '/log', 'w')\nkeep()", "place"),
        ("place.mkdir(exist_ok=True)", "torch.save(1, place / 'best.pt')", None),
    ],
)
def test_cell_creating_used_folder_is_included(makes: str, uses: str, name: str | None) -> None:
    """Without the folder, a training that ends with a save would fail: empty folders are not
    sent.
    """
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
def test_unused_folder_and_folder_beside_training_are_excluded(makes: str, uses: str) -> None:
    assert included(chosen("import os", makes, uses)) in ([0, 2], [2])
