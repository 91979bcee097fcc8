"""Detection of code that selects its own GPUs; code that uses the assigned GPUs is accepted."""

from __future__ import annotations

from pathlib import Path

import pytest
from nbformat import v4, writes

from benchpool_scheduler.client.code_warnings import of_script, of_submission, piece_of_source
from benchpool_scheduler.client.code_warnings.gpu_choice import choices
from benchpool_scheduler.contract import JobSubmission, NotebookEntry, ScriptEntry

SETS = [
    ("import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '1'", 2, "CUDA_VISIBLE_DEVICES to `1`"),
    ("from os import environ\nenviron['HIP_VISIBLE_DEVICES'] = '0,1'", 2, "to `0,1`"),
    ("os.environ['CUDA_VISIBLE_DEVICES'] = str(3)", 1, "to `3`"),
    ("os.environ['CUDA_VISIBLE_DEVICES'] = str(args.gpu)", 1, "sets CUDA_VISIBLE_DEVICES, which"),
    ("if True:\n    os.environ.update({\n    'CUDA_VISIBLE_DEVICES': '2'})", 3, "to `2`"),
    ("os.environ.update(CUDA_VISIBLE_DEVICES='2')", 1, "to `2`"),
    ("os.environ.setdefault('HIP_VISIBLE_DEVICES', '2')", 1, "HIP_VISIBLE_DEVICES to `2`"),
    ("os.putenv('NVIDIA_VISIBLE_DEVICES', '2')", 1, "NVIDIA_VISIBLE_DEVICES to `2`"),
    ("subprocess.run(c, env={**os.environ, 'CUDA_VISIBLE_DEVICES': '0'})", 1, "to `0`"),
    ("os.system('CUDA_VISIBLE_DEVICES=0 python x.py')", 1, "to `0`"),
    ("x = 1\n%env CUDA_VISIBLE_DEVICES=1", 2, "to `1`"),
    ("%set_env CUDA_VISIBLE_DEVICES 1", 1, "to `1`"),
    ("!export CUDA_VISIBLE_DEVICES=1", 1, "to `1`"),
    ("!CUDA_VISIBLE_DEVICES='1' python x.py", 1, "to `1`"),
    ("%%bash\n\nexport CUDA_VISIBLE_DEVICES=$GPU\npython x.py", 3, "sets CUDA_VISIBLE_DEVICES, wh"),
    ("os.environ['CUDA_VISIBLE_DEVICES'] = ''", 1, "hides the GPUs"),
    ("def broken(:\n%env CUDA_VISIBLE_DEVICES=1", 2, "to `1`"),
]


@pytest.mark.parametrize(("source", "line", "text"), SETS)
def test_gpu_variable_is_found_with_line_number(source: str, line: int, text: str) -> None:
    ((found, warning),) = choices(piece_of_source("cell 1", source), 1)
    assert found == line
    assert text in warning


DEVICES = [
    "torch.cuda.set_device(3)",
    "net.to('cuda:3')",
    "net.cuda(3)",
    "torch.device('cuda', 3)",
    "torch.device('cuda:3' if torch.cuda.is_available() else 'cpu')",
    "pipeline('text', device='cuda:3')",
    "device = 'cuda:3'",
    "DataParallel(net, device_ids=[0, 3])",
    "with tf.device('/GPU:3'):\n    pass",
]


@pytest.mark.parametrize("source", DEVICES)
def test_device_beyond_requested_gpus_is_found(source: str) -> None:
    ((line, warning),) = choices(piece_of_source("cell 1", source), 2)
    assert (line, warning) == (
        1,
        "uses GPU 3, and the job is sent with 2 GPUs: use numbers below 2, or ask for 4 GPUs",
    )
    assert not list(choices(piece_of_source("cell 1", source), 4))
    assert not list(choices(piece_of_source("cell 1", source), 0)), "it may run on the CPU"


FINE = [
    "print(os.environ['CUDA_VISIBLE_DEVICES'])",
    "os.environ['CUDA_VISIBLE_DEVICES'] = os.environ['CUDA_VISIBLE_DEVICES'].split(',')[0]",
    "os.environ['CUDA_VISIBLE_DEVICES'] = str(os.environ['LOCAL_RANK'])",
    "os.environ.setdefault('CUDA_VISIBLE_DEVICES', '0')",
    "print('run it as CUDA_VISIBLE_DEVICES=0 python x.py')",
    "frame['CUDA_VISIBLE_DEVICES'] = 3",
    "torch.load(path, map_location={'cuda:3': 'cuda:0'})",
    "if device == 'cuda:3': pass",
    "name.startswith('cuda:3')",
    "torch.device('cuda:3' if torch.cuda.device_count() > 3 else 'cuda:0')",
    "'''Use cuda:3.'''",
    "%env CUDA_VISIBLE_DEVICES",
    "!echo $CUDA_VISIBLE_DEVICES",
    "torch.cuda.set_device(local_rank)",
]


@pytest.mark.parametrize("source", FINE)
def test_code_using_assigned_gpus_has_no_warning(source: str) -> None:
    assert not list(choices(piece_of_source("cell 1", source), 1))


def test_gpu_numbers_of_own_container_are_accepted() -> None:
    piece = piece_of_source("cell 1", "os.environ['CUDA_VISIBLE_DEVICES'] = '0,1'")
    assert not list(choices(piece, 2, contained=True))
    assert len(list(choices(piece, 1, contained=True))) == 1


def test_warnings_name_cell_and_file(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import lib\n")
    (tmp_path / "lib.py").write_text("import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'\n")
    script = JobSubmission(entry=ScriptEntry("train.py", []))
    (found,) = of_script(tmp_path, "train.py", script)
    assert (found.where, found.line) == ("lib.py", 2)

    sets = "%env CUDA_VISIBLE_DEVICES=1"
    code = [v4.new_markdown_cell(sets), v4.new_code_cell(f"import lib\n{sets}")]
    book = writes(v4.new_notebook(cells=code))
    (tmp_path / "book.ipynb").write_text(book)
    cells = JobSubmission(entry=NotebookEntry("0" * 64, "book.ipynb"))
    warned = of_submission(tmp_path, cells, "book.ipynb")
    assert [(each.where, each.line) for each in warned] == [("cell 2", 2), ("lib.py", 2)]
