"""Drafts sent from a pod: the job uses the pod's image and takes the files it cannot see."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchpool import drafts, import_problems
from benchpool.cells import NotebookCell
from benchpool.drafts import Draft, JobOptions
from benchpool.kernel_environment import KernelEnvironment, kernel_environment

ALONE = KernelEnvironment("lab/notebook:1", files_travel=True)
SHARED = KernelEnvironment("lab/notebook:1")


def drafted(
    folder: Path, here: KernelEnvironment, *, image: str | None = None, to_send: bool = True
) -> Draft:
    (folder / "data.txt").write_text("1")
    (folder / "helpers.py").write_text("x = 1")
    return drafts.of_cells(
        [NotebookCell("a", "import helpers", selected=True)],
        JobOptions(key="k", image=image),
        kind="cells",
        folder=folder,
        interpreter="/opt/conda/bin/python",
        here=here,
        to_send=to_send,
    )


def test_files_are_sent_when_job_cannot_see_folder(tmp_path: Path) -> None:
    draft = drafted(tmp_path, ALONE)
    assert {file.path for file in draft.submission.files} == {"data.txt", "helpers.py"}
    assert {file.sha256 for file in draft.submission.files} < set(draft.contents)
    assert draft.submission.image == "lab/notebook:1"
    assert draft.submission.working_dir == str(tmp_path)  # used if the home can be mounted


@pytest.mark.parametrize("here", [KernelEnvironment(), SHARED])
def test_no_files_are_sent_when_job_sees_folder(tmp_path: Path, here: KernelEnvironment) -> None:
    draft = drafted(tmp_path, here)
    assert draft.submission.files == []
    assert len(draft.contents) == 1
    assert draft.submission.image == here.image


def test_preview_reads_no_files(tmp_path: Path) -> None:
    assert drafted(tmp_path, ALONE, to_send=False).submission.files == []


def test_requested_image_overrides_notebook_image(tmp_path: Path) -> None:
    assert drafted(tmp_path, ALONE, image="mine:2").submission.image == "mine:2"


def test_empty_image_variable_means_no_image() -> None:
    assert kernel_environment({"BENCHPOOL_IMAGE": ""}) == KernelEnvironment()


def test_unchecked_imports_of_other_image_are_reported(tmp_path: Path) -> None:
    (problem,) = import_problems.problems(drafted(tmp_path, ALONE, image="mine:2"), None, ALONE)
    assert problem.level == "warning"
    assert problem.text == "imports are not checked: the packages of mine:2 are not known here"
