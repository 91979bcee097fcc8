"""``%%serve`` in a real kernel with a real pool."""

from __future__ import annotations

import pytest

from benchpool_support.own_kernels import KernelSession
from benchpool_support.serving import Served
from benchpool_support.waiting import until

pytestmark = pytest.mark.slow

ANSWERS = """\
class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

print("serves", model["trained_by"], flush=True)
address = ("127.0.0.1", int(os.environ["PORT"]))
http.server.HTTPServer(address, Answers).serve_forever()
"""


def test_cell_is_served_with_earlier_cells_and_session_value(
    session: KernelSession, pool: Served
) -> None:
    session.run("import benchpool, http.server, os")
    session.run("model = {'trained_by': os.getpid()}")
    kernel = session.text("print(model['trained_by'])").strip()
    session.run(f"%%serve chat --min 0 --idle 10m --send model\n{ANSWERS}")
    session.run("chat = _")
    assert session.text("print(chat.wait().state)").strip() == "ready"
    job = session.text("print(chat.replicas[0].job)").strip()
    with pool.client("susan") as client:
        found = client.service("chat")
        # The value was sent: its cell did not run again in the job.
        assert f"serves {kernel}\n".encode() in client.log(job).data
        assert (found.min_replicas, found.idle_s) == (0, 600)
        session.run("model = {'trained_by': 'me again'}")
        session.run(f"%%serve chat --min 0 --idle 10m --send model --update\n{ANSWERS}")

        def exchanged() -> list[str]:
            replicas = client.service("chat").replicas
            return [it.job for it in replicas if it.version == 2 and it.phase == "ready"]

        (job,) = until(exchanged, "the service is exchanged")
        assert b"serves me again\n" in client.log(job).data
    session.run("chat.remove()")


def test_invalid_serve_option_is_rejected_in_one_sentence(
    session: KernelSession, pool: Served
) -> None:
    session.run("import benchpool")
    for line, message in (
        ("--min 0", "%%serve: the following arguments are required: NAME. `%serve -"),
        ("chat --sweep lr=1", "%%serve: unrecognized arguments: --sweep"),
        ("Chat", "cannot be part of an address"),
        ("chat --access us", "Use owner, project, group:NAME or everyone."),
    ):
        assert message in session.text(f"%%serve {line}\nprint(1)")
    with pool.client("susan") as client:
        assert client.services() == []


def test_serving_cell_is_excluded_from_jobs(session: KernelSession, pool: Served) -> None:
    session.run("import benchpool")
    session.run("%%serve Chat\nx = 1")
    session.run("%%train\nprint('job', 'x' in dir())")
    id_ = session.text("print(_.id)").strip()
    with pool.client("susan") as client:
        client.wait(id_)
        assert b"job False\n" in client.log(id_).data
