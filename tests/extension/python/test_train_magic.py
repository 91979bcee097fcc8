"""``%%train`` in a real kernel with a real pool."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchpool.cells.left_out import SERVE, TRAIN
from benchpool.keep import Keep
from benchpool.magic import cells_of, read_options
from benchpool_scheduler.contract import JobSubmission, NotebookEntry, State
from benchpool_scheduler.contract.options import OPTIONS
from benchpool_scheduler.errors import InvalidInput
from benchpool_support.own_kernels import KernelSession
from benchpool_support.serving import Served

pytestmark = pytest.mark.slow


def test_cell_is_sent_with_needed_earlier_cells(
    session: KernelSession, pool: Served, susan: Path
) -> None:
    session.run("import os")
    session.run("base = 20")
    session.run("unused = 1")
    session.run("broken = = 1")
    session.run("%load_ext benchpool")
    outputs = session.run("%%train --gpus 2 --name mine\nprint('sum', base + 1, os.getcwd())")
    (shown,) = [each for each in outputs if each["kind"] == "display_data"]
    assert "application/vnd.jupyter.widget-view+json" in shown["data"]
    id_ = session.text("print(_.id)").strip()
    with pool.client("susan") as client:
        assert client.wait(id_).state is State.SUCCEEDED
        assert f"sum 21 {susan}\n".encode() in client.log(id_).data
        submission: JobSubmission = client.submission(id_)
    assert (submission.gpus, submission.name) == (2, "mine")
    assert isinstance(submission.entry, NotebookEntry)
    assert submission.entry.name.startswith("book-")
    assert submission.source is not None
    assert submission.source.kind == "magic"
    results = list((susan / "benchpool-results").glob("mine-*/book-*.ipynb"))
    assert len(results) == 1
    assert "unused" not in results[0].read_text()


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("--name run  # Bob's, don't touch", "run"),
        ("# --name run", None),
        ("--name 'run # 3'", "run # 3"),
        (r"--name Bob\'s # the third", "Bob's"),
        ("--name a#b", "a#b"),
    ],
)
def test_comment_after_options_is_ignored(line: str, name: str | None) -> None:
    assert read_options(line).name == name


def test_import_registers_magic_and_refusals_are_sentences(
    session: KernelSession,
) -> None:
    session.run("import benchpool")
    session.run("def f():\n    return gone")
    assert session.text("%%train\nf()") == (
        "In [2], line 2: `gone` is defined in no cell of this notebook.\n"
    )
    assert session.text("%%train --gpus 2\nprint(nothing_here)") == (
        "Line 2: `nothing_here` is defined in no cell of this notebook.\n"
    )
    output = session.text("%%train --gpu 2\nprint(1)")
    assert output == (
        "%%train: unrecognized arguments: --gpu 2. `%train --help` lists the options.\n"
    )
    assert session.text("%train --help").startswith("usage: %%train ")
    assert session.text("%%train --help\nprint(1)") == session.text("%train --help")
    output = session.text("%train --gpus 1")
    assert output.startswith("%train sends nothing. Write %%train in the first line of the cell")
    output = session.text("%%train --name Bob's run\nprint(1)")
    assert output.startswith('%%train: a quotation mark in "--name Bob\'s run" is not closed.')
    assert output.count("\n") == 1
    output = session.text("%%train\nimport msgspecc")
    assert output.endswith("the Python of this job; did you mean `msgspec`?\n")
    output = session.text("%%train --gpus 99\nprint(1)")
    assert "99" in output
    assert "Traceback" not in output


def test_session_cells_keep_execution_order() -> None:
    history = ["", "x = 1", "%%train\nx", "x = = 2", "%%bash\nls", "x = 3", "%%train\nprint(x)"]
    cells = cells_of(history, "print(x)")
    assert [(each.source, each.selected, each.number) for each in cells] == [
        ("x = 1", False, 1),
        ("%%bash\nls", False, 4),
        ("x = 3", False, 5),
        ("# %%train\nprint(x)", True, 6),
    ]


def test_recorded_train_call_is_excluded() -> None:
    sent = "get_ipython().run_cell_magic('train', '--gpus 1', 'x = 2\\n')\n"
    cells = cells_of(["", "x = 1", sent, "%%train\nprint(x)"], "print(x)")
    assert [each.number for each in cells] == [1, 3]


def test_options_are_split_like_shell_words() -> None:
    options = read_options("--gpus 4 --project vision --name 'a b' --time-limit 90m --priority 3")
    assert (
        options.spec.gpus,
        options.project,
        options.name,
        options.spec.time_limit_s,
        options.spec.priority,
    ) == (
        4,
        "vision",
        "a b",
        5400,
        3,
    )
    options = read_options("--workers 2 --spread --gpu-model H100 --gpu-model A100")
    assert (options.spec.spread, options.spec.gpu_models) == (True, ("H100", "A100"))
    assert read_options("--keep a --keep b --pickle").keep == Keep(("a", "b"), pickle=True)
    assert read_options("").keep == Keep()
    with pytest.raises(InvalidInput, match="keep: 'a b' is not a valid name"):
        read_options("--keep 'a b'")
    with pytest.raises(InvalidInput, match="invalid int value: 'two'"):
        read_options("--gpus two")


OF_THE_MAGIC = ["--send", "--keep", "--pickle", "--sweep", "--array", "--trials", "--maximize"]


@pytest.mark.parametrize("magic", [TRAIN, SERVE])
def test_help_lists_every_option(magic: str, session: KernelSession) -> None:
    flags = {
        TRAIN: [*OF_THE_MAGIC, *(each.flag for each in OPTIONS)],
        SERVE: ["NAME", "--send", "--pickle", "--gpus", "--min", "--idle", "--update"],
    }[magic]
    session.run("%load_ext benchpool")
    advised = re.findall("`(.*?)`", session.text(f"%%{magic} --nonsense\nprint(1)"))
    assert advised == [f"%{magic} --help"]
    listed = session.text(advised[0]).split()
    assert [flag for flag in flags if not {flag, f"{flag},"} & {*listed}] == []
    assert "Name of a value of this session to send" in " ".join(listed)
    assert advised[0] in session.text(f"print(get_ipython().object_inspect_text('%%{magic}'))")


def test_failed_cell_does_not_block_later_jobs(session: KernelSession, pool: Served) -> None:
    session.run("%load_ext benchpool")
    session.run("rows = [1, 2]")
    session.run("rows.append(3); rows.oops()")
    session.run("rows = rows + nowhere")
    session.run("rows = rows[:1]")
    session.run("%%train --name kept\nprint('rows', rows)")
    id_ = session.text("print(_.id)").strip()
    with pool.client("susan") as client:
        assert client.wait(id_).state is State.SUCCEEDED
        assert b"rows [1]\n" in client.log(id_).data
