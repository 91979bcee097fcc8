"""Notebook files of every format are read as the cells that a job runs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchpool_scheduler.cli.notebooks import cells_of
from benchpool_scheduler.client import notebooks
from benchpool_scheduler.errors import InvalidInput

PICTURE = {"dot.png": {"image/png": "aGVsbG8="}}
OLD: dict[str, Any] = {
    "nbformat": 3,
    "nbformat_minor": 0,
    "metadata": {"name": ""},
    "worksheets": [
        {
            "metadata": {},
            "cells": [
                {"cell_type": "heading", "level": 2, "metadata": {}, "source": ["Title"]},
                {
                    "cell_type": "code",
                    "collapsed": False,
                    "input": ["x = 1\n", "print(x)"],
                    "language": "python",
                    "metadata": {},
                    "outputs": [{"output_type": "stream", "stream": "stdout", "text": ["1\n"]}],
                    "prompt_number": 3,
                },
            ],
        }
    ],
}


def written(path: Path, notebook: object) -> Path:
    path.write_text(json.dumps(notebook))
    return path


def of_four(*cells: dict[str, Any], minor: int = 5, **metadata: Any) -> dict[str, Any]:
    return {"nbformat": 4, "nbformat_minor": minor, "metadata": metadata, "cells": list(cells)}


def test_notebook_format_three_is_read_as_cells(tmp_path: Path) -> None:
    path = written(tmp_path / "old.ipynb", OLD)
    cells = notebooks.read(path).cells
    assert [(each.cell_type, each.source) for each in cells] == [
        ("markdown", "## Title"),
        ("code", "x = 1\nprint(x)"),
    ]
    assert cells_of(path) == cells_of(path)


def test_metadata_and_attachments_are_sent_without_outputs(tmp_path: Path) -> None:
    own = {"tags": ["parameters"], "mine": 1, "execution": {"iopub.status.busy": "now"}}
    code = {"cell_type": "code", "id": "a", "metadata": own}
    prose = {"cell_type": "markdown", "id": "b", "metadata": {}, "attachments": PICTURE}
    book = of_four(
        {**code, "source": "lr = 1", "outputs": [{"text": "old"}], "execution_count": 7},
        {**prose, "source": ["![](attachment:", "dot.png)"]},
    )
    sent = json.loads(cells_of(written(tmp_path / "book.ipynb", book)))
    kept = {"benchpool": {"number": 1}, "tags": ["parameters"], "mine": 1}
    assert sent["cells"][0]["metadata"] == kept
    assert sent["cells"][0]["outputs"] == []
    assert sent["cells"][1]["attachments"] == PICTURE
    assert sent["cells"][1]["source"] == "![](attachment:dot.png)"


def test_notebook_kernel_is_read(tmp_path: Path) -> None:
    spec = {"name": "torch-env", "display_name": "Torch", "language": "python"}
    path = written(tmp_path / "book.ipynb", of_four(kernelspec=spec))
    assert notebooks.read(path).kernel == "torch-env"
    path = written(tmp_path / "book.ipynb", of_four())
    assert notebooks.read(path).kernel is None
    path = written(tmp_path / "book.ipynb", of_four(kernelspec={"name": "iris"}))
    assert notebooks.read(path).kernel == "iris"


@pytest.mark.parametrize(
    ("notebook", "message"),
    [
        ({"nbformat": 3, "worksheets": 1}, "cannot be read as a notebook"),
        ({"nbformat": 4, "cells": [{"cell_type": "code"}]}, "cannot be read as a notebook"),
        ([], "cannot be read as a notebook"),
        (of_four(kernelspec={"language": "julia"}), "is written in julia"),
        (of_four(language_info={"name": "R"}), "is written in R"),
        (of_four(kernelspec={"name": "ir"}), "is written in R"),
        (of_four(kernelspec={"name": "julia-1.11"}), "is written in Julia"),
    ],
)
def test_non_python_notebook_is_rejected(tmp_path: Path, notebook: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        notebooks.read(written(tmp_path / "book.ipynb", notebook))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_notebook_is_read_in_every_json_encoding(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "book.ipynb"
    code = {"cell_type": "code", "id": "a", "metadata": {}, "source": "print('ü')"}
    path.write_bytes(json.dumps(of_four(code), ensure_ascii=False).encode(encoding))
    assert [cell.source for cell in notebooks.read(path).cells] == ["print('ü')"]


def test_other_encoding_is_rejected_with_conversion_command(
    tmp_path: Path,
) -> None:
    path = tmp_path / "book of mine.ipynb"
    code = {"cell_type": "code", "id": "a", "metadata": {}, "source": "print('café')"}
    path.write_bytes(json.dumps(of_four(code), ensure_ascii=False).encode("cp1252"))
    with pytest.raises(InvalidInput, match="is 0xE9, which is not UTF-8 text") as refused:
        notebooks.read(path)
    command = refused.value.message.split("`")[1]
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, check=True)
    path.write_bytes(done.stdout)
    assert notebooks.read(path).cells[0].source == "print('café')"


def test_missing_or_invalid_notebook_is_distinguished(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="No such file or directory"):
        notebooks.read(tmp_path / "none.ipynb")
    (tmp_path / "book.ipynb").write_text("%%")
    with pytest.raises(InvalidInput, match="Send one that JupyterLab opens"):
        notebooks.read(tmp_path / "book.ipynb")


def test_cells_with_repeated_id_are_all_kept(tmp_path: Path) -> None:
    kinds = ("markdown", "code", "code", "markdown", "code")
    cells = [
        {"cell_type": kind, "id": id_, "metadata": {}, "source": str(number)}
        for number, (kind, id_) in enumerate(zip(kinds, "xxxyy", strict=True))
    ]
    read = notebooks.read(written(tmp_path / "book.ipynb", of_four(*cells))).cells
    assert [(cell.cell_type, cell.source) for cell in read] == [
        (kind, str(number)) for number, kind in enumerate(kinds)
    ]
    assert len({cell.id for cell in read}) == 5


def test_notebook_metadata_is_sent(tmp_path: Path) -> None:
    spec = {"name": "torch-env", "display_name": "Torch", "language": "python"}
    book = of_four(kernelspec=spec, title="Diffusion", authors=[{"name": "susan"}], widgets={})
    sent = json.loads(cells_of(written(tmp_path / "book.ipynb", book)))["metadata"]
    assert sent["kernelspec"] == spec
    assert (sent["title"], sent["authors"]) == ("Diffusion", [{"name": "susan"}])
    assert "widgets" not in sent
    assert sent["benchpool"] == {"path": "book.ipynb"}
