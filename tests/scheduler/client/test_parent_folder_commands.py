"""Commands in cells that use files above the sent folder are found, as in Python code."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchpool_scheduler.client.code_warnings import SentFolder, of_pieces, piece_of_source
from benchpool_scheduler.contract import CommandEntry, JobSubmission


@pytest.fixture
def notebooks(tmp_path: Path) -> Path:
    for folder in ("repo/notebooks/inner", "repo/data"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("data/x.csv", "tool.py", "data/a b.csv"):
        (tmp_path / "repo" / name).write_text("1\n")
    return tmp_path / "repo" / "notebooks"


def found(source: str, root: Path, where: str = "cell 1") -> list[tuple[int, str]]:
    sent = SentFolder(root, "use.ipynb")
    job = JobSubmission(entry=CommandEntry(["true"]))
    warnings = of_pieces([piece_of_source(where, source)], job, root, sent)
    return [(each.line, each.text) for each in warnings]


COMMANDS = {
    "!cat ../data/x.csv": "../data/x.csv",
    "!wc -l < ../data/x.csv": "../data/x.csv",
    "!wc -l <../data/x.csv|tail": "../data/x.csv",
    "!sort x >../data/new.csv": "../data/new.csv",
    "!python ../tool.py --lr 1": "../tool.py",
    "!python train.py --data=../data/x.csv": "../data/x.csv",
    "!dd if=../data/x.csv of=y": "../data/x.csv",
    "!DATA=../data python train.py": "../data",
    "!cat '../data/a b.csv'": "../data/a b.csv",
    "!cat ../data/$name.csv": "../data",
    "!cat ../data/{name}.csv": "../data",
    "!cat inner/../../data/x.csv": "../data/x.csv",
    "!cd .. && python tool.py": "..",
    "!ls ..": "..",
    "!cat ../data/x.csv 'not closed": "../data/x.csv",
    "!!cat ../data/x.csv": "../data/x.csv",
    "files = !ls ../data": "../data",
    "a, b = !cat ../data/x.csv": "../data/x.csv",
    "if 1:\n    !cat ../data/x.csv": "../data/x.csv",
    "%%bash\ncat ../data/x.csv": "../data/x.csv",
    "%run ../tool.py": "../tool.py",
    "%run -i ../tool.py 3": "../tool.py",
    "%load ../tool.py": "../tool.py",
    "%cd ../data": "../data",
    "%cd ..": "..",
    "%env DATA=../data": "../data",
    "%pip install -r ../tool.py": "../tool.py",
    "%%writefile ../data/made.py\nx = 1": "../data/made.py",
    "%time x = open('../data/x.csv')": "../data/x.csv",
    "%timeit -n 3 open('../data/x.csv')": "../data/x.csv",
    "%%time\nopen('../data/x.csv')": "../data/x.csv",
    "names = !ls\nopen('../data/x.csv')": "../data/x.csv",
    "os.system('cat ../data/x.csv')": "../data/x.csv",
    "subprocess.run('cat ../data/x.csv', shell=True)": "../data/x.csv",
    "subprocess.run(f'cat ../data/{name}', shell=True)": "../data",
    "subprocess.check_output(['cat', '../data/a b.csv'])": "../data/a b.csv",
    "get_ipython().system('cat ../data/x.csv')": "../data/x.csv",
    "files = get_ipython().getoutput('ls ../data')": "../data",
    "get_ipython().run_line_magic('run', '../tool.py')": "../tool.py",
    "get_ipython().run_line_magic('run', '-i ../tool.py')": "../tool.py",
    "get_ipython().run_line_magic('cd', '..')": "..",
    "get_ipython().run_cell_magic('bash', '', 'cd inner\\ncat ../data/x.csv\\n')": "../data/x.csv",
}


@pytest.mark.parametrize("source", COMMANDS)
def test_command_using_file_above_is_found_once(source: str, notebooks: Path) -> None:
    whole = source if source.startswith("%%") else f"x = 1\n{source}"
    ((line, text),) = found(whole, notebooks)
    assert line == (1 if source.startswith("%%writefile") else len(whole.split("\n")))
    path = COMMANDS[source]
    instead = Path(*Path(path).parts[1:]).as_posix()
    assert text == (
        f"`{path}` is above the folder notebooks and is not sent with the job: run `benchpool "
        f"submit notebooks/use.ipynb` in {notebooks.parent}, with `{instead}` instead of `{path}` "
        "in the code"
    )


@pytest.mark.parametrize(
    "source",
    [
        "!cat data/x.csv",
        "!cat ../nothing/x.csv",
        "!grep '..' names",
        "!git diff HEAD..main",
        "!cat $HOME/../data/x.csv",
        "!sed 's/../data/' x",
        "!cat inner/../x.csv",
        "# !cat ../data/x.csv",
        "%%bash\n# cat ../data/x.csv",
        "x = y != '..'",
        "os.system('ls')",
        "get_ipython().run_line_magic('run', 'tool.py')",
    ],
)
def test_command_within_folder_has_no_warning(source: str, notebooks: Path) -> None:
    assert found(source, notebooks) == []


def test_lines_of_python_file_are_no_commands(notebooks: Path) -> None:
    assert found("x = '''\n!cat ../data/x.csv\n'''", notebooks, "tool.py") == []
