"""Cells and functions of a kernel whose Python lacks benchpool, as jobs of a real pool."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from benchpool_scheduler.contract import NotebookEntry, State
from benchpool_support import live_kernels
from benchpool_support.notebook_server import NotebookServer
from benchpool_support.serving import Served

pytestmark = pytest.mark.slow

Run = Callable[[str], Awaitable[str]]


async def test_cell_is_sent_with_needed_cells_and_returns_values(run: Run, pool: Served) -> None:
    await run("base = 20")
    await run("unused = 1")
    await run("broken = undefined")
    assert await run("import benchpool\nprint(hasattr(benchpool, 'quota'))") == "False\n"
    line = "%%train --gpus 2 --name mine --keep total\n"
    assert await run(f"{line}total = [base + 1]\nprint('sum', total)") == ""
    printed = await run("job = _\nprint(job.wait().state, job['total'], job.result()['total'])")
    assert printed == "succeeded [21] [21]\n"
    with pool.client("susan") as client:
        submission = client.submission((await run("print(job.id)")).strip())
    assert (submission.gpus, submission.name) == (2, "mine")
    assert (submission.interpreter or "").endswith("/env/bin/python")
    assert isinstance(submission.entry, NotebookEntry)
    assert "sum [21]" in await run("print(job.logs())")
    names = (await run("print(*job.files)")).split()
    (notebook,) = (Path(each) for each in names if each.endswith(".ipynb"))
    assert "unused" not in notebook.read_text()
    assert (await run("print(job)")).endswith(" mine: succeeded (2 GPUs)\n")


async def test_values_of_session_are_sent_and_loaded(run: Run) -> None:
    await run(
        "import benchpool, array\nnumbers = {'a': [1, 2.5]}\nlock = __import__('_thread').lock"
    )
    assert await run("%%train --send numbers\nprint('got', numbers)") == ""
    await run("job = _")
    assert "got {'a': [1, 2.5]}" in await run("print(job.wait().logs())")
    assert "missing is not defined in this session" in await run("%%train --send missing\nmissing")


async def test_function_is_sent_and_its_result_returned(run: Run) -> None:
    await run("import benchpool\nrate = 3\nunused = 1 / 7")
    await run(
        "@benchpool.remote(gpus=1)\n"
        "def train(x, *, more=2):\n"
        "    return {'value': x * rate + more}\n"
        "job = train.submit(4)\n"
        "jobs = benchpool.map(train, benchpool.grid(x=[1, 2], more=[0]))\n"
        "one = benchpool.submit(train, 5, name='five', more=1)"
    )
    assert await run("print(train(1), job.result(), one.result(), one.name)") == (
        "{'value': 5} {'value': 14} {'value': 16} five\n"
    )
    assert await run("print([each.result()['value'] for each in jobs.wait()])") == "[3, 6]\n"


async def test_file_and_function_are_scheduled(run: Run, pool: Served) -> None:
    await run("import benchpool, pathlib\npathlib.Path('late.py').write_text('print(1)')")
    await run("def twice(x, zone='here'):\n    return 2 * x")
    sent = "print(benchpool.submit({}, every='night at 2', zone='Europe/Berlin', name='{}'))"
    text = await run(sent.format("'late.py'", "file"))
    assert " file: Sends every night at 2 (Europe/Berlin), unless" in text
    assert text.count("02:00") == 5
    assert " call: Sends every night at 2 (" in await run(sent.format("twice, 4", "call"))
    refused = (
        "try:\n    benchpool.submit('late.py', zone='UTC')\nexcept Exception as it:\n    print(it)"
    )
    assert await run(refused) == "zone needs every WHEN.\n"
    with pool.client("susan") as client:
        schedules = client.schedules()
        assert [(one.name, one.cron) for one in schedules] == [
            ("call", "0 2 * * *"), ("file", "0 2 * * *"),
        ]  # fmt: skip
        for one in schedules:
            client.remove_schedule(one.id)


async def test_failed_job_raises_its_exception_with_traceback(run: Run) -> None:
    await run("import benchpool")
    await run("%%train\n{}['key']")
    printed = await run(
        "job = _\n"
        "try:\n"
        "    job.result()\n"
        "except KeyError as failed:\n"
        "    print(type(failed).__name__, failed.error, \"{}['key']\" in failed.traceback)"
    )
    assert printed == "JobFailed KeyError True\n"


async def test_refusals_and_help_are_printed(run: Run) -> None:
    await run("import benchpool")
    assert "GPUs" in await run("%%train --gpus 99\npass")
    assert "lists the options" in await run("%%train --nonsense\npass")
    assert "--time-limit" in await run("%train --help")
    assert "undefined" in await run("%%train\nprint(undefined)")
    raised = "try:\n    {}\nexcept Exception as it:\n    print(type(it).__name__, it)"
    assert await run(raised.format("benchpool.submit(lambda: 1, 2)")) == (
        "InvalidInput <lambda>(): too many positional arguments.\n"
    )
    assert (await run(raised.format("benchpool.job('none')"))).startswith("PoolRefused No visible")
    assert (await run(raised.format("benchpool.quota"))).startswith(
        "AttributeError benchpool.quota is not in this Python, which has JobFailed, grid, job, log"
    )


async def test_job_is_cancelled_and_its_result_raises(run: Run) -> None:
    await run("import benchpool, concurrent.futures")
    await run("%%train\nimport time\ntime.sleep(600)")
    printed = await run(
        "job = _\n"
        "try:\n"
        "    job.result(timeout=0)\n"
        "except concurrent.futures.TimeoutError as late:\n"
        "    print(str(late).partition(') ')[2])\n"
        "job.cancel()\n"
        "try:\n"
        "    job.result()\n"
        "except concurrent.futures.CancelledError as it:\n"
        "    print(str(it).partition(') ')[2])"
    )
    assert printed == "has not ended within 0 s; the job continues\nwas cancelled\n"


async def test_script_runs_with_python_of_kernel(run: Run, pool: Served) -> None:
    await run(
        "from pathlib import Path\nPath('part.py').write_text('import sys; print(sys.argv[1])')"
    )
    await run("import benchpool\njob = benchpool.submit('part.py', 7, gpus=1, tags=['own'])")
    assert await run("print(job.wait().logs())") == "7\n\n"
    with pool.client("susan") as client:
        (found,) = client.jobs(tag="own")
        assert (client.submission(found.id).interpreter or "").endswith("/env/bin/python")
        assert found.state is State.SUCCEEDED


async def test_installed_benchpool_takes_precedence(server: NotebookServer) -> None:
    kernel = live_kernels.start(server.page)
    code = "import benchpool\nprint(benchpool.__file__.endswith('.zip/benchpool/__init__.py'))"
    assert await live_kernels.run(server.page, kernel, code) == "False\n"
    assert "user='susan'" in await live_kernels.run(server.page, kernel, "print(benchpool.quota())")
    server.page.delete(f"api/kernels/{kernel}")
