"""Server-sent events are parsed equally for any chunking by the network."""

from __future__ import annotations

from benchpool_scheduler.client.streams import Parser, ServerEvent

STREAM = (
    ': beat\n\nid: 7\nevent: job\ndata: {"a": "é\u2028"}\n\n: beat\n\ndata: two\ndata: lines\n\n'
    "event: nothing\n\nretry: 5\r\nid: 9\r\ndata:no space\r\n\r\n"
).encode()
EVENTS = [
    ServerEvent("7", "job", '{"a": "é\u2028"}'.encode()),
    ServerEvent("7", "message", b"two\nlines"),
    ServerEvent("9", "message", b"no space"),
]


def test_stream_yields_same_events_for_any_chunking() -> None:
    for width in range(1, len(STREAM) + 1):
        parser = Parser()
        pieces = [STREAM[at : at + width] for at in range(0, len(STREAM), width)]
        assert [event for piece in pieces for event in parser.feed(piece)] == EVENTS, width
