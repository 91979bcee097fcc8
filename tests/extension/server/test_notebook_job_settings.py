"""A sent job has the kernel, the tags and the chosen variables of its notebook."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchpool_support.dialog import body, made, new_key, write_notebook
from benchpool_support.notebook_server import NotebookServer, notebook_server
from benchpool_support.serving import Served

pytestmark = pytest.mark.slow
SECRET = "servers-own-token-0123456789"


@pytest.fixture(scope="module")
def server(pool: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NotebookServer]:
    """Yield a notebook server with a second kernel, the same Python under another path."""
    folder = tmp_path_factory.mktemp("server")
    kernel = folder / "data" / "kernels" / "other"
    kernel.mkdir(parents=True)
    (folder / "python-of-other").symlink_to(sys.executable)
    argv = [str(folder / "python-of-other"), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "Other", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(spec))
    environ = {"BENCHPOOL_URL": pool.url, "JUPYTERHUB_API_TOKEN": SECRET}
    with notebook_server(folder, environ) as running:
        yield running


def saved_with(server: NotebookServer, kernel: str) -> dict[str, Any]:
    """Save a notebook with a kernel and return the request of the file browser."""
    path = server.root / "book.ipynb"
    write_notebook(path, "print(1)")
    book = json.loads(path.read_text())
    book["metadata"]["kernelspec"] = {"name": kernel, "display_name": kernel, "language": "python"}
    path.write_text(json.dumps(book))
    return body("notebook", "book.ipynb", cells=None, kernel_name=None)


def test_saved_kernel_runs_notebook_from_file_browser(
    server: NotebookServer,
) -> None:
    answer = made(server.page.post("benchpool/prepare", json=saved_with(server, "other")))
    assert Path(answer["interpreter"]).name == "python-of-other"
    assert answer["problems"] == []


def test_missing_kernel_is_reported_with_replacement(
    server: NotebookServer,
) -> None:
    answer = made(server.page.post("benchpool/prepare", json=saved_with(server, "torch-env")))
    assert answer["interpreter"] == sys.executable
    (problem,) = answer["problems"]
    assert problem["level"] == "warning"
    assert problem["text"].startswith("The notebook's kernel torch-env is not on this server")


def test_variables_processors_memory_and_tags_are_sent(
    server: NotebookServer, pool: Served
) -> None:
    (server.root / "live").mkdir()
    asked = body(path="live/book.ipynb", cpus=1, memory_gib=0.5, env={"SEED": "two words"})
    cell = "import os\nprint(os.environ['SEED'])"
    asked["cells"] = [
        {"id": "a", "cell_type": "markdown", "source": "![](attachment:x.png)"},
        {"id": "b", "cell_type": "code", "source": cell, "selected": True, "tags": ["mine"]},
    ]
    asked["cells"][0]["attachments"] = {"x.png": {"image/png": "aGVsbG8="}}
    answer = made(server.page.post("benchpool/prepare", json=asked))
    assert "--cpus 1.0 --memory 0.5 --env 'SEED=two words'" in answer["command"]
    job = made(server.page.post("benchpool/send", json={**asked, "key": new_key()}))
    with pool.client("susan") as client:
        assert client.wait(job["id"]).state == "succeeded"
    result = made(server.page.get("benchpool/result", params={"job": job["id"]}))
    copy = json.loads((server.root / result["notebook"]).read_text())
    prose, code = copy["cells"][-2:]
    assert prose["attachments"] == {"x.png": {"image/png": "aGVsbG8="}}
    assert code["metadata"]["tags"] == ["mine"]
    assert code["outputs"][0]["text"] in ("two words\n", ["two words\n"])
