"""``benchpool.serve`` with a real pool."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

import benchpool
from benchpool_scheduler.errors import InvalidInput, NotFound, Refused

pytestmark = pytest.mark.slow

ANSWERS = """\
import http.server, sys
address = ("127.0.0.1", int(sys.argv[1]))
http.server.HTTPServer(address, http.server.SimpleHTTPRequestHandler).serve_forever()
"""

IN_A_CELL = """\
address = ("127.0.0.1", int(os.environ["PORT"]))
http.server.HTTPServer(address, http.server.SimpleHTTPRequestHandler).serve_forever()
"""


def test_script_service_sleeps_wakes_and_is_removed(susan: Path) -> None:
    (susan / "answer.py").write_text(ANSWERS)
    chat = benchpool.serve("chat", "answer.py", "{port}", min=0, idle="10m")
    assert chat.wait().url.endswith("/s/chat/")
    assert repr(chat) == f"chat at {chat.url}: ready. 1 replica answers."
    (replica,) = chat.replicas
    assert benchpool.job(replica.job).state == "running"
    assert (chat.sleep().state, chat.stop().state) == ("asleep", "stopped")
    with pytest.raises(Refused, match="stopped it"):
        chat.wait()
    assert chat.wake().wait().state == "ready"
    chat.remove()
    with pytest.raises(NotFound):
        chat.refresh()


def test_notebook_is_served_like_script(susan: Path) -> None:
    cells = [nbformat.v4.new_code_cell(text) for text in ("import http.server, os", IN_A_CELL)]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    book = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(book, susan / "answer.ipynb")
    chat = benchpool.serve("book", "answer.ipynb")
    assert chat.wait().state == "ready"
    chat.remove()


def test_invalid_service_is_rejected_before_sending(susan: Path) -> None:
    (susan / "answer.py").write_text(ANSWERS)
    with pytest.raises(InvalidInput, match="part of an address"):
        benchpool.serve("Chat", "answer.py")
    with pytest.raises(InvalidInput, match="There is no file"):
        benchpool.serve("chat", "missing.py")
    with pytest.raises(TypeError):
        benchpool.serve("chat", "answer.py", least=3)
