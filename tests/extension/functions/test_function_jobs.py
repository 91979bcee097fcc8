"""Functions of a kernel session and of a script as jobs of a real pool."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

import benchpool

pytestmark = pytest.mark.slow


def log_of(session: Any, name: str) -> str:
    """Return the log of the job in a session variable, after its end."""
    return benchpool.job(session.run(f"print({name}.id)").strip()).wait().logs()


def test_function_is_sent_with_its_dependencies(session: Any, susan: Path) -> None:
    (susan / "part.py").write_text("def double(x):\n    return 2 * x\n")
    session.run("import benchpool, functools, math\nfrom part import double\nunused = 1 / 7")
    session.run("rate, base = 3, 10\n\ndef traced(f):\n    return functools.wraps(f)(f)")
    output = session.run(
        "def scaled(k):\n"
        "    def inner(x):\n"
        "        return k * x\n"
        "    return inner\n"
        "by_five = scaled(5)\n"
        "\n"
        "@benchpool.remote(gpus=2)\n"
        "@traced\n"
        "def train(x, *, more=base):\n"
        "    print('got', double(x) + rate + more + by_five(1), math.pi > 3)\n"
        "    return x\n"
        "\n"
        "job = train.submit(7)\n"
        "raise SystemError('what stands below the sending has not run')"
    )
    assert output.startswith("SystemError")
    assert "got 32 True\n" in log_of(session, "job")
    sent = benchpool.jobs()[0]
    assert (sent.name, sent.facts.gpus, str(sent.state)) == ("train", 2, "succeeded")
    (copy,) = (susan / "benchpool-results").glob("train-*/book-*.ipynb")
    cells = nbformat.read(copy, as_version=4).cells
    assert cells[-1].source == "train(7)"
    assert cells[-1].outputs[-1].data["text/plain"] == "7"
    text = "\n".join(cell.source for cell in cells)
    assert "unused" not in text
    assert "submit" not in text
    assert session.run("train(1)").endswith("got 20 True\n1"), "a plain call runs here"


def test_object_arguments_are_built_in_job_by_their_cells(session: Any) -> None:
    session.run("import benchpool\nclass Box:\n    def __init__(self, k):\n        self.k = k")
    session.run("box = Box(40)\nbox.k += 1\n\ndef show(box, *, n):\n    print('box', box.k + n)")
    session.run("job = benchpool.submit(show, box, n=1, gpus=1, name='shown')")
    assert "box 42\n" in log_of(session, "job")
    session.run("two = benchpool.submit(lambda x: print('lambda', x + box.k), 1)")
    assert "lambda 42\n" in log_of(session, "two")
    assert session.run("len([job, two])") == "2", "the session goes on"


def test_failing_function_is_rejected_before_sending(session: Any) -> None:
    session.run("import benchpool")
    output = session.run("def f(x):\n    return gone + x\n\nbenchpool.submit(f, 1)")
    assert output == (
        "InvalidInput: In [2], line 2: `gone` is defined in no cell of this notebook."
    )
    assert session.run("benchpool.submit(f)").endswith("missing a required argument: 'x'.")
    output = session.run("job = benchpool.submit(print, 1)\ndef g():\n    return job.id")
    output = session.run("benchpool.submit(g)")
    assert output.startswith("InvalidInput: In [4], line 1: `job` is set by a statement that sends")
    output = session.run("benchpool.submit(print, 1, gpus=99)")
    assert "99 GPUs" in output
    output = session.run("benchpool.remote(gpu=2)(g).submit()")
    assert output.startswith(
        "TypeError: 'gpu' is not an option of a job; the options are after, after_any, cpus"
    )


def test_map_sends_in_order_waits_and_cancels_rest(session: Any) -> None:
    session.run(
        "import benchpool, time\n"
        "def train(lr, seed=0):\n"
        "    print('trained with', lr, seed, flush=True)\n"
        "    time.sleep(600 * (seed == 9))\n"
        "grid = benchpool.grid(lr=[0.1, 0.2], seed=range(2))"
    )
    session.run("jobs = benchpool.map(train, grid, gpus=1).wait()")
    assert session.run("print(jobs)") == "4 jobs: 4 succeeded\n"
    assert session.run("{each.facts.priority for each in jobs}") == "{40}", "below single jobs"
    output = session.run("for each in jobs: print(each.name, each.logs().splitlines()[-1])")
    assert output.splitlines() == [
        f"train {at} trained with {lr} {seed}"
        for at, (lr, seed) in enumerate([(0.1, 0), (0.1, 1), (0.2, 0), (0.2, 1)], 1)
    ]
    assert session.run("len(benchpool.jobs(tag=jobs.tag))") == "4"
    session.run("some = benchpool.map(train, [(1, 0), (2, 9), (3, 9)])\nsome[0].wait()")
    assert (
        session.run("print(some.cancel('enough').wait())") == "3 jobs: 2 cancelled, 1 succeeded\n"
    )
    output = session.run("import itertools\nbenchpool.map(train, itertools.count())")
    assert output.startswith("InvalidInput: The map has more than 100 jobs. Pass most=N to raise")


SCRIPT = """\
import benchpool
from beside import K

SCALE = 2

def train(x):
    print("trained", SCALE * x + K)

def main():
    for x in (1,):
        print(benchpool.submit(train, x=x).id)

if __name__ == "__main__":
    main()
"""


def test_script_function_is_sent_with_adjacent_modules(susan: Path) -> None:
    (susan / "tools").mkdir()
    (susan / "tools" / "beside.py").write_text("K = 5")
    (susan / "tools" / "send.py").write_text(SCRIPT)
    words = [sys.executable, "tools/send.py"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    job = benchpool.job(done.stdout.strip()).wait()
    assert "trained 7\n" in job.logs()
    assert job.name == "train"
    (susan / "tools" / "send.py").write_text(SCRIPT.replace("SCALE *", "SCALES *"))
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr == (
        "benchpool: InvalidInput: send.py, line 7: `SCALES` is defined nowhere before this line; "
        "did you mean `SCALE`? (send.py, line 11)\n"
    )
    words = [sys.executable, "-c", "import benchpool\nbenchpool.submit(lambda: 1)"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert "Send it from a notebook, IPython or a script" in done.stderr
