"""Server-sent events: resumed by ID without gap or repeat, ended when the caller loses access."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import msgspec
import pytest

from benchpool_scheduler.api import Rate, Timing
from benchpool_scheduler.api.logs import PIECE
from benchpool_scheduler.api.views import Encodings
from benchpool_scheduler.client.streams import Parser, ServerEvent
from benchpool_scheduler.contract import CommandEntry, Job, JobSubmission, LogText, State
from benchpool_scheduler.errors import NotFound, TooMany
from benchpool_scheduler.service import Caller, FeedEvent
from benchpool_support import direct
from benchpool_support.loopback import free_port
from benchpool_support.pools import sleeper
from benchpool_support.scripted import ScriptedRuntime, devices
from benchpool_support.serving import CONFIGURATION, Served, served

pytestmark = pytest.mark.slow

PRINTER = "for i in range(20000): print(f'line {i} äöü€😀', flush=i % 1000 == 0)"
"""More output than the server sends at once, so that chunks end inside characters."""


def run(program: str) -> JobSubmission:
    return JobSubmission(entry=CommandEntry([sys.executable, "-c", program]))


def read(
    service: Served, path: str, headers: dict[str, str] | None = None, user: str = "susan"
) -> Iterator[ServerEvent]:
    """Open a connection and yield its events until it is closed or the reader stops."""
    http = direct.Client(timeout=30)
    known = {"Authorization": f"token {user}", **(headers or {})}
    request = http.build_request("GET", f"{service.url}/api/v1/{path}", headers=known)
    answer = http.send(request, stream=True)
    assert answer.status_code == 200, answer.read()
    return _events(http, answer)


def _events(http: httpx.Client, answer: httpx.Response) -> Iterator[ServerEvent]:
    parser = Parser()
    with closing(http), closing(answer):
        for chunk in answer.iter_raw():
            yield from parser.feed(chunk)


def test_log_interrupted_at_every_event_arrives_complete(service: Served) -> None:
    with service.client("susan") as susan:
        job = susan.submit(run(PRINTER))
        text, last, ended = "", "0", False
        while not ended:
            for event in read(service, f"jobs/{job.id}/logs/stream", {"Last-Event-ID": last}):
                ended = event.name == "end"
                if event.name == "log":
                    text += msgspec.json.decode(event.data, type=LogText).text
                    last = event.id
                break
        whole = susan.log(job.id).data
        assert len(whole) > 5 * PIECE
    assert text == whole.decode()
    assert text.count("\n") == 20000


def test_log_of_queued_job_can_be_followed(service: Served) -> None:
    with service.client("susan") as susan:
        blocker = susan.submit(JobSubmission(entry=CommandEntry(["sleep", "600"]), gpus=4))
        job = susan.submit(run("print('at last')"))
        stream = susan.follow_log(job.id)
        susan.cancel(blocker.id)
        assert "".join(piece.text for piece in stream) == "at last\n"


def test_followed_log_ends_when_queued_job_is_cancelled(service: Served) -> None:
    with service.client("susan") as susan:
        blocker = JobSubmission(entry=CommandEntry(["sleep", "600"]), gpus=4)
        susan.submit(blocker)
        job = susan.submit(run("pass"))
        stream = susan.follow_log(job.id)
        susan.cancel(job.id)
        assert list(stream) == []


def test_log_tail_can_be_read(service: Served) -> None:
    with service.client("susan") as susan:
        job = susan.submit(run("print('a' * 1000 + 'the end')"))
        susan.wait(job.id)
        tail = susan.log(job.id, offset=-8)
    assert (tail.data, tail.offset, tail.ended) == (b"the end\n", 1000, True)


def test_log_of_another_user_is_not_found(service: Served) -> None:
    with service.client("susan") as susan, service.client("joe") as joe:
        job = susan.submit(run("pass"))
        with pytest.raises(NotFound):
            next(joe.follow_log(job.id))


def test_events_resume_after_disconnect_without_gap_or_repeat(service: Served) -> None:
    with service.client("susan") as susan:
        stream = read(service, "events")
        jobs = [susan.submit(run("pass")).id for _ in range(5)]
        for job in jobs:
            susan.wait(job)
        everything = list(until_ended(stream, set(jobs)))
        seen = everything[: len(everything) // 2 + 1]
        again = read(service, "events", {"Last-Event-ID": seen[-1].id})
        # Several changes of one job arrive as one event with the number of the last change. Only
        # the marker therefore proves that all earlier changes have arrived.
        marker = susan.submit(run("pass")).id
        rest = list(until_ended(again, {marker}))
    for events in (everything, [*seen, *rest]):
        ids = [int(event.id) for event in events]
        assert ids == sorted(set(ids))
    received = states([*seen, *rest])
    assert {job: received.get(job) for job in jobs} == states(everything)


def states(events: list[ServerEvent]) -> dict[str, State]:
    """Return the last state of each job according to these events."""
    jobs = [msgspec.json.decode(event.data, type=Job) for event in events if event.name == "job"]
    return {job.id: job.state for job in jobs}


def until_ended(stream: Iterator[ServerEvent], jobs: set[str]) -> Iterator[ServerEvent]:
    """Yield events until these jobs have ended; the stream must not end earlier."""
    for event in stream:
        yield event
        if event.name == "job":
            job = msgspec.json.decode(event.data, type=Job)
            if job.state in (State.SUCCEEDED, State.FAILED):
                jobs.discard(job.id)
        if not jobs:
            return
    raise AssertionError(f"the stream ended, and nothing was said of the end of {jobs}")


def test_events_hide_jobs_of_other_users(service: Served) -> None:
    with service.client("susan") as susan, service.client("joe") as joe:
        stream = read(service, "events", user="joe")
        hidden = susan.submit(run("pass"))
        susan.wait(hidden.id)
        own = joe.submit(run("pass"))
        seen = list(until_ended(stream, {own.id}))
    assert all(hidden.id.encode() not in event.data for event in seen)
    assert any(own.id.encode() in event.data for event in seen)


def test_idle_stream_sends_heartbeats(tmp_path: Path) -> None:
    timing = Timing(heartbeat_s=0.05)
    headers = {"Authorization": "token susan"}
    with served(tmp_path / "state", timing=timing) as service:
        address = f"{service.url}/api/v1/events"
        with direct.stream("GET", address, headers=headers, timeout=60) as answer:
            got = b""
            for chunk in answer.iter_raw():
                got += chunk
                if got.count(b": still here\n\n") >= 3:
                    break
    assert got.count(b": still here\n\n") >= 3, "the stream ended before"


def test_stream_ends_when_token_is_revoked(tmp_path: Path) -> None:
    timing = Timing(heartbeat_s=0.05, recheck_s=0.1)
    with served(tmp_path / "state", timing=timing) as service:
        stream = read(service, "events")
        service.identity.revoked.add("susan")
        list(stream)  # otherwise the stream never ends


def test_streams_end_at_shutdown_and_clients_resume(tmp_path: Path) -> None:
    state, port = tmp_path / "state", free_port()
    with served(state, port=port, keep_jobs=True) as service:
        client = service.client("susan")
        job = client.submit(run("import time; print('a', flush=True); time.sleep(2); print('b')"))
        pieces = client.follow_log(job.id)
        first = next(pieces)
    with served(state, port=port):
        text = first.text + "".join(piece.text for piece in pieces)
    client.close()
    assert text == "a\nb\n"


def test_streams_above_limit_are_rejected(tmp_path: Path) -> None:
    with served(
        tmp_path / "state", configuration=f"{CONFIGURATION}budgets: {{streams: 2}}\n"
    ) as service:
        with service.client("susan") as susan:
            streams = [susan.events() for _ in range(3)]
            for stream in streams[:2]:
                assert next(stream).kind == "open"
            with pytest.raises(TooMany, match="susan has 2 open event streams; the limit is 2"):
                next(streams[2])
        with service.client("joe") as joe:
            assert next(joe.events()).kind == "open"


def test_requests_above_rate_limit_are_rejected_until_later(tmp_path: Path) -> None:
    rate = Rate(per_s=0.01, burst=3)
    with served(tmp_path / "state", rate=rate) as service, service.client("susan") as susan:
        for _ in range(3):
            susan.jobs()
        with pytest.raises(TooMany):
            [susan.jobs() for _ in range(3)]
        with service.client("hub") as hub:
            for _ in range(20):
                hub.status()


def test_client_waits_for_the_rate_limit(tmp_path: Path) -> None:
    """An upload of many small files goes on at the speed of the limit."""
    rate = Rate(per_s=20, burst=2)
    with served(tmp_path / "state", rate=rate) as service, service.client("susan") as susan:
        for _ in range(12):
            assert susan.jobs() == []


def test_long_list_counts_as_several_requests(tmp_path: Path) -> None:
    rate, runtime = Rate(per_s=0.01, burst=4), ScriptedRuntime(devices(5))
    with served(tmp_path / "state", rate=rate, runtime=runtime, keep_jobs=True) as service:

        async def many() -> None:
            for _ in range(250):
                await service.pool.jobs.submit(Caller("susan"), sleeper(project="vision"))

        service.do(many())
        with service.client("susan") as susan, service.client("joe") as joe:
            assert len(susan.jobs()) == 250
            with pytest.raises(TooMany, match="every 100 entries of a list count as one more"):
                susan.status()
            assert [len(joe.jobs()) for _ in range(4)] == [0] * 4


def test_event_piece_is_encoded_once_for_all_readers() -> None:
    encodings = Encodings()
    piece = (FeedEvent(7, "job", b"{}"), FeedEvent(8, "pool", b"[]"))
    made = encodings.of(piece)
    assert made == b"id: 7\nevent: job\ndata: {}\n\nid: 8\nevent: pool\ndata: []\n\n"
    assert all(encodings.of(piece) is made for _ in range(500))
    others = [(FeedEvent(number, "job", b"{}"),) for number in range(100)]
    assert [encodings.of(one)[:6] for one in others[:10]] == [b"id: %d\n" % n for n in range(10)]
    assert {encodings.of(one).count(b"event: job") for one in others} == {1}
    assert encodings.of(piece) == made  # evicted meanwhile, and encoded again
