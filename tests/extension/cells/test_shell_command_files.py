"""Files that shell commands write and read: their cells are included or reported."""

from __future__ import annotations

import pytest

from benchpool.cells.shell_files import of_command
from benchpool_support.cells import chosen, included

COMMANDS = {  # files written, files read
    "mkdir -p out/a": ("out/a", ""),
    "touch a.txt && cat b.txt": ("a.txt", "b.txt"),
    "python made.py --lr 0.1 --data=set.csv": ("", "made.py set.csv"),
    "./made.sh < in.txt > out.txt": ("out.txt", "in.txt made.sh"),
    "ls data/ >> names.txt 2>&1": ("names.txt", "data"),
    "cp -r one.py two.py there": ("there", "one.py two.py"),
    "wget -q http://host/a/set.csv?x=1": ("set.csv", ""),
    "wget http://host/x -qO set.csv": ("set.csv", ""),
    "curl -sSLo set.csv http://host/x": ("set.csv", ""),
    "curl -LO http://host/set.csv": ("set.csv", ""),
    "curl http://host/set.csv": ("", ""),
    "git clone --depth 1 https://host/repo.git": ("repo", ""),
    "git clone https://host/repo.git here": ("here", ""),
    "unzip -q set.zip -d set": ("set", "set.zip"),
    "X=1 sudo python run.py | tee log.txt": ("log.txt", "run.py"),
    "echo 'text.txt' \"": ("", ""),
    "": ("", ""),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_files_of_shell_command_are_found(command: str) -> None:
    uses = of_command(command)
    written = sorted(text for each in uses if each.writes for text in each.texts)
    read = sorted(
        text for each in uses if not each.writes for text in each.texts if "host" not in text
    )
    wanted = COMMANDS[command]
    assert (" ".join(written), " ".join(read)) == wanted


MADE = "%%writefile made.py\nprint(1)"
RUNS = [
    "!python made.py",
    "!python ./made.py",
    "%%bash\npython made.py",
    "%run made.py",
    "%run made.py arg",
    "import made",
    "from made import *",
    "open('made.py').read()",
    "import subprocess\nsubprocess.run(['python', 'made.py'], check=True)",
    "import subprocess as sp\nsp.check_output('python made.py', shell=True)",
    "from subprocess import run\nrun(['python', 'made.py'])",
    "import os\nos.system('python made.py')",
    "name = 'made.py'\n!python {name}",
    "name = 'made.py'\nget_ipython().system(f'python {name}')",
    "def f():\n    !python made.py\nf()",
]


@pytest.mark.parametrize("runs", RUNS)
def test_written_file_is_included_with_cell_running_it(runs: str) -> None:
    as_a_session_keeps_it = "get_ipython().run_cell_magic('writefile', 'made.py', '1\\n')"
    for writes in (MADE, as_a_session_keeps_it):
        found = chosen("x = 1", writes, runs)
        assert included(found) == [1, 2]
        assert found.cells[1].why == "writes `made.py`"


def test_file_written_under_variable_name_is_included() -> None:
    cells = ["name = 'made.py'", "%%writefile {name}\nprint(1)"]
    assert included(chosen(*cells, "!python made.py")) == [0, 1, 2]
    assert included(chosen(*cells, "!python $name")) == [0, 1, 2]
    assert included(chosen("n = open('n').read()", "%%writefile $n\n1", "!python a.py")) == [
        0,
        1,
        2,
    ]


def test_last_full_write_and_appends_are_included() -> None:
    cells = [MADE, MADE, "%%writefile -a made.py\nprint(2)", "%%writefile other.py\n1", RUNS[0]]
    assert included(chosen(*cells)) == [1, 2, 4]


def test_unused_written_file_is_excluded() -> None:
    assert included(chosen(MADE, "print(1)")) == [1]
    assert included(chosen(MADE, "!python other.py")) == [1]
    assert included(chosen("!python made.py", MADE, "print(1)", select=(0, 2))) == [0, 2]


@pytest.mark.parametrize(
    ("writes", "reads", "name"),
    [
        ("open('made.py', 'w').write('print(1)')", "!python made.py", "made.py"),
        ("!wget -q http://host/y.csv", "open('y.csv').read()", "y.csv"),
        ("!git clone http://host/repo", "import sys\nsys.path.append('repo')", "repo"),
        ("!git clone http://host/repo", "%cd repo", "repo"),
        ("%%bash\ncurl -o y.csv http://host", "open('y.csv').read()", "y.csv"),
        ("!ls > names.txt", "!wc -l names.txt", "names.txt"),
    ],
)
def test_excluded_shell_command_writing_read_file_is_reported(
    writes: str, reads: str, name: str
) -> None:
    found = chosen(writes, reads)
    assert included(found) == [1]
    text = (
        f"cell 1 writes a file (`{name}`) that cell 2 reads, and is not included: the job reads "
        "the existing file; tick cell 1 to write it again"
    )
    assert text in [each.text for each in found.problems]


@pytest.mark.parametrize("makes", ["!mkdir -p out", "%mkdir out", "%%bash\nmkdir out", "mkdir out"])
def test_folder_created_by_shell_command_is_included(makes: str) -> None:
    found = chosen(makes, "x = 1", "open('out/a', 'w').write('1')")
    assert included(found) == [0, 2]
    assert found.cells[0].why == "makes the folder `out`"
