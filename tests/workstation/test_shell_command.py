"""``benchpool shell`` in a terminal opens a shell in the job, for the job's owner only."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchpool_scheduler.client import Client, Credentials
from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_support import shells_of_people
from benchpool_support.workstation import RunningWorkstation

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

SLEEPER = JobSubmission(entry=CommandEntry(["sleep", "3600"]), gpus=1, name="entered")


def pool(up: RunningWorkstation) -> str:
    return f"{up.ready['url']}services/benchpool"


@pytest.fixture
def job(up: RunningWorkstation) -> Iterator[str]:
    """Yield a running job of joe."""
    with Client(Credentials(pool(up), up.token_of("joe"))) as joe:
        id_ = joe.submit(SLEEPER).id
        up.wait_job(id_, "running")
        yield id_
        joe.cancel(id_, "the test is over")
        up.wait_job(id_, "cancelled")


def test_shell_opens_in_job_and_restores_terminal(up: RunningWorkstation, job: str) -> None:
    joe = shells_of_people.environ(pool(up), up.token_of("joe"))
    with shells_of_people.begun(joe, job) as terminal:
        assert not terminal.shows_what_is_typed()
        terminal.type(b'echo "<$BENCHPOOL_JOB_ID>"\n')
        terminal.until(f"<{job}>".encode())
        shells_of_people.obeys(terminal)
        terminal.type(b"\x1c")  # Ctrl-\ ends a program that catches Ctrl-C
        terminal.type(b"exit 7\n")
        assert terminal.end() == 7
        assert terminal.shows_what_is_typed()
    assert b"benchpool: The shell has ended." in terminal.printed
    (event,) = [it for it in up.wait_audit("open_shell", 1) if it["target"] == job]
    assert (event["actor"], event["outcome"]) == ("joe", "done")


def test_shell_is_rejected_for_lead_and_colleague(up: RunningWorkstation, job: str) -> None:
    susan = shells_of_people.environ(pool(up), up.token_of("susan"))
    assert "only joe may open a shell in it" in shells_of_people.refused(susan, job)
    jemma = shells_of_people.environ(pool(up), up.token_of("jemma"))
    assert "only joe" not in shells_of_people.refused(jemma, job)


def test_shell_ends_with_job(up: RunningWorkstation, job: str) -> None:
    token = up.token_of("joe")
    with shells_of_people.begun(shells_of_people.environ(pool(up), token), job) as terminal:
        with Client(Credentials(pool(up), token)) as joe:
            joe.cancel(job, "enough")
        assert terminal.end() == 1
    # The side that detects the end first reports it.
    output = terminal.printed.decode()
    assert "ended with attempt 1" in output or "ended by a signal, as at the end of its" in output
