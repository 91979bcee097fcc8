"""``%%train --send``: values of a real kernel are sent with a job to a real pool."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient

from benchpool_scheduler.contract import State
from benchpool_scheduler.worker.records import VALUES
from benchpool_support.own_kernels import own_kernel
from benchpool_support.serving import Served

pytestmark = pytest.mark.slow
numpy = pytest.importorskip("numpy")


@pytest.fixture
def kernel(susan: Path) -> Iterator[BlockingKernelClient]:
    with own_kernel(os.environ, susan) as client:
        yield client


def run_cell(client: BlockingKernelClient, code: str) -> str:
    """Run a cell and return its output or result."""
    found: list[str] = []

    def take(message: dict[str, Any]) -> None:
        content = message["content"]
        found.append(content.get("text", "") or content.get("data", {}).get("text/plain", ""))

    client.execute_interactive(code, output_hook=take, timeout=120)
    return "".join(found)


def sent(client: BlockingKernelClient, cell: str) -> str:
    """Send a cell and return the ID of its job."""
    run_cell(client, cell)
    return run_cell(client, "print(_.id)").strip()


def test_sent_value_replaces_its_cells(
    kernel: BlockingKernelClient, pool: Served, susan: Path
) -> None:
    run_cell(kernel, "import benchpool, numpy as np")
    run_cell(kernel, "import pathlib\nx = np.arange(5.0); pathlib.Path('ran').write_text('again')")
    run_cell(kernel, "x[0] = 7\npair = {'of': x}")
    (susan / "ran").unlink()
    id_ = sent(kernel, "%%train --send x --send pair\nprint('sum', x.sum(), pair['of'] is x)")
    with pool.client("susan") as client:
        assert client.wait(id_).state is State.SUCCEEDED
        log = client.log(id_).data.decode()
        submission = client.submission(id_)
        assert "sum 17.0 True" in log, "the kernel's own value, and what it shares"
        assert "benchpool: from the notebook: x (ndarray), pair (dict)" in log
        assert not (susan / "ran").exists(), "the cells that made it did not run"
        assert {file.path for file in submission.files} == {
            f"{VALUES}/{name}" for name in ("0.npy", "contents.json", "values.json")
        }
        again = sent(kernel, "%%train --send x --send pair\nprint('sum', x.sum())")
        same = client.submission(again).files
        assert {file.sha256 for file in same} == {file.sha256 for file in submission.files}
        assert client.wait(again).state is State.SUCCEEDED, "each attempt finds it anew"


def test_unsendable_value_is_named_before_sending(
    kernel: BlockingKernelClient, pool: Served
) -> None:
    run_cell(kernel, "import benchpool, threading")
    run_cell(kernel, "run = {'lock': threading.Lock()}")
    output = run_cell(kernel, "%%train --send run\nprint(run)")
    assert output == (
        "Some values cannot be sent: run['lock'] is a lock. Leave them out, so that their cells "
        "run again in the job, or allow pickles.\n"
    )
    output = run_cell(kernel, "%%train --send gone\nprint(1)")
    assert "gone is not defined in this session" in output


def test_value_used_in_older_state_is_recomputed(
    kernel: BlockingKernelClient, pool: Served
) -> None:
    run_cell(kernel, "import benchpool")
    run_cell(kernel, "x = [1]")
    run_cell(kernel, "first = x[0]")
    run_cell(kernel, "x.append(2)\nx[0] = 9")
    run_cell(kernel, "job = None")
    output = run_cell(kernel, "%%train --send x\nprint('got', x, first)")
    assert "the value of `x` is not sent" in output
    id_ = run_cell(kernel, "print(_.id)").strip()
    with pool.client("susan") as client:
        client.wait(id_)
        assert "got [9, 2] 1" in client.log(id_).data.decode()


@pytest.mark.parametrize(
    ("made", "changed", "uses", "why"),
    [
        (
            "import math\nx = [1]",
            "x.append(2)",
            "math.floor(2.5)",
            "may set or change it again",
        ),
        ("x = [1]", "x.append(2)\nmore = 2", "more", "uses its value before its last change"),
    ],
)
def test_value_changed_by_included_cell_is_recomputed(
    kernel: BlockingKernelClient, pool: Served, made: str, changed: str, uses: str, why: str
) -> None:
    run_cell(kernel, "import benchpool")
    run_cell(kernel, made)
    run_cell(kernel, changed)
    output = run_cell(kernel, f"%%train --send x\nprint('got', x, {uses})")
    assert f"the value of `x` is not sent: an included cell {why}, so the" in output
    id_ = run_cell(kernel, "print(_.id)").strip()
    with pool.client("susan") as client:
        client.wait(id_)
        assert "got [1, 2] 2" in client.log(id_).data.decode()


def test_values_above_pool_limit_are_rejected_with_limit(
    kernel: BlockingKernelClient, pool: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_cell(kernel, "import benchpool, numpy as np\nx = np.zeros((1 << 30) + 1, 'u1')")
    output = run_cell(kernel, "%%train --send x\nprint(x.size)")
    assert output.startswith("The values sent with it have 1.0 GiB")
    assert "budgets.values_gib" in output
