"""Code that uses files above the sent folder is found, with advice."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchpool_scheduler.client import imports
from benchpool_scheduler.client.code_warnings import SentFolder, of_script, piece_of_source
from benchpool_scheduler.client.imports.files_above import uses
from benchpool_scheduler.contract import JobSubmission, ScriptEntry


@pytest.fixture
def notebooks(tmp_path: Path) -> Path:
    for folder in ("repo/notebooks/inner", "repo/data", "repo/common", "repo/pack"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "repo" / "data" / "x.csv").write_text("1\n")
    (tmp_path / "repo" / "common" / "helper_fn.py").write_text("def f(): return 7\n")
    (tmp_path / "repo" / "pack" / "__init__.py").write_text("")
    return tmp_path / "repo" / "notebooks"


def found(source: str, root: Path, code: str = "use.py") -> list[tuple[int, str]]:
    return list(uses(piece_of_source(code, source), SentFolder(root, code)))


READS = [
    "open('../data/x.csv')",
    "pandas.read_csv('../data/x.csv')",
    "Path('..') / 'data' / 'x.csv'",
    "os.path.join('..', 'data', 'x.csv')",
    "Path.cwd().parent / 'data' / 'x.csv'",
    "Path('..').joinpath('data', 'x.csv').read_text()",
    "data = '../data/' + 'x.csv'",
]


@pytest.mark.parametrize("source", READS)
def test_file_above_folder_is_found_with_advice(source: str, notebooks: Path) -> None:
    assert found(f"x = 1\n{source}", notebooks) == [
        (
            2,
            "`../data/x.csv` is above the folder notebooks and is not sent with the job: run "
            f"`benchpool submit notebooks/use.py` in {notebooks.parent}, with `data/x.csv` instead "
            "of `../data/x.csv` in the code",
        )
    ]


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ("open(f'../data/{name}.csv')", "../data"),
        ("glob('../data/*.csv')", "../data/*.csv"),
        ("os.listdir('..')", ".."),
        ("open('../data/new.csv', 'w')", "../data/new.csv"),
        ("os.path.join('..', 'data', name)", "../data"),
        ("root = '../data/' + name", "../data"),
    ],
)
def test_partly_computed_path_is_found(source: str, path: str, notebooks: Path) -> None:
    ((_, text),) = found(source, notebooks)
    assert text.startswith(f"`{path}` is above the folder notebooks")


def test_path_from_code_file_needs_no_code_change(notebooks: Path) -> None:
    source = "open(Path(__file__).resolve().parent.parent / 'data' / 'x.csv')"
    ((_, text),) = found(source, notebooks)
    assert text.endswith(f"run `benchpool submit notebooks/use.py` in {notebooks.parent}")
    assert not found(source, notebooks.parent, "notebooks/use.py"), "it travels with that folder"


def test_modules_above_folder_are_found_without_other_advice(notebooks: Path) -> None:
    source = "import sys\nsys.path.append('../common')\nimport helper_fn\n"
    ((line, text),) = found(source, notebooks)
    assert (line, text.split(":")[0]) == (
        2,
        "`helper_fn` in `../common` is above the folder notebooks and is not sent with the job",
    )
    (notebooks / "use.py").write_text(source)
    job = JobSubmission(entry=ScriptEntry("use.py", []))
    assert imports.missing_of(notebooks, job, {}) == []
    assert [each.line for each in of_script(notebooks, "use.py", job)] == [2]


@pytest.mark.parametrize("put", ["sys.path.insert(0, '..')", "sys.path += [str(Path('..'))]"])
def test_package_of_parent_folder_is_found(put: str, notebooks: Path) -> None:
    ((_, text),) = found(f"import sys\n{put}\nfrom pack import x", notebooks)
    assert text.startswith("`pack` in `..` is above the folder notebooks")
    assert text.endswith("with `.` instead of `..` in the code")


def test_module_in_sent_folder_is_not_missing(notebooks: Path) -> None:
    (notebooks / "inner" / "deep_fn.py").write_text("")
    (notebooks / "use.py").write_text("import sys\nsys.path.append('inner')\nimport deep_fn\n")
    job = JobSubmission(entry=ScriptEntry("use.py", []))
    assert imports.missing_of(notebooks, job, {}) == []
    assert of_script(notebooks, "use.py", job) == []


@pytest.mark.parametrize(
    "source",
    [
        "open('data/x.csv')",
        "open('../nothing/x.csv')",
        "name.split('..')",
        "'..'.join(names)",
        "url.replace('../', '')",
        "'''See ../data/x.csv.'''",
        "open('inner/../x.csv')",
        "import sys\nsys.path.append('..')\nimport json",
        "open(f'{folder}/../data')",
    ],
)
def test_code_within_folder_has_no_warning(source: str, notebooks: Path) -> None:
    assert found(source, notebooks) == []


def test_deeply_nested_code_has_no_warning(notebooks: Path) -> None:
    deep = " + ".join(["name"] * 3000)
    (notebooks / "use.py").write_text(f"import sys\nx = open({deep})\nsys.path.append('..')\n")
    job = JobSubmission(entry=ScriptEntry("use.py", []))
    assert of_script(notebooks, "use.py", job) == []
    assert imports.missing_of(notebooks, job, {}) == []


@pytest.mark.parametrize("path", ["../" + "x" * 5000, "../a\\0b"])
def test_unusable_path_has_no_warning(path: str, notebooks: Path) -> None:
    source = f"import json, sys\nsys.path.append('{path}')\nopen('{path}')\n"
    (notebooks / "use.py").write_text(source)
    job = JobSubmission(entry=ScriptEntry("use.py", []))
    assert of_script(notebooks, "use.py", job) == []
    assert imports.missing_of(notebooks, job, {}) == []
