"""Pace of notifications: no storm, and no message is delayed forever."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.notifications.pace import HOUR_S, SendingPace, earliest, kept

ARRIVALS = st.lists(st.floats(0, 12 * HOUR_S), min_size=1, max_size=200).map(sorted)
PACES = st.builds(SendingPace, st.integers(1, 60).map(lambda it: it * 60.0), st.integers(1, 20))


def sends(arrivals: list[float], pace: SendingPace) -> list[tuple[float, int]]:
    """Return the times of bundles and the number of messages in each, as sent by the loop."""
    gone: list[tuple[float, int]] = []
    sent: list[float] = []
    left = list(arrivals)
    while left:
        at = left[0]
        while (due := earliest(kept(sent, at), pace, at)) > at:
            at = due
        going = [it for it in left if it <= at]
        gone.append((at, len(going)))
        sent.append(at)
        left = left[len(going) :]
    return gone


@given(ARRIVALS, PACES)
def test_sending_pace_loses_no_message_and_respects_limit(
    arrivals: list[float], pace: SendingPace
) -> None:
    gone = sends(arrivals, pace)
    times = [at for at, _ in gone]
    assert sum(number for _, number in gone) == len(arrivals)
    assert times[0] == arrivals[0]  # the first at once
    assert all(
        later - sooner >= pace.bundle_s - 1e-6 for sooner, later in itertools.pairwise(times)
    )
    for first, further in zip(times, times[pace.per_hour :], strict=False):
        assert further - first >= HOUR_S - 1e-6


@given(st.lists(st.floats(0, 1e6)).map(sorted), PACES, st.floats(0, 1e6))
def test_next_message_waits_at_most_one_hour(
    sent: list[float], pace: SendingPace, now: float
) -> None:
    assert now <= earliest(sent, pace, now) <= now + HOUR_S


@given(st.lists(st.floats(1, 1e6), min_size=1).map(sorted), PACES, st.floats(0, 1e6))
def test_clock_set_back_does_not_delay_messages(
    back_s: list[float], pace: SendingPace, now: float
) -> None:
    """Messages sent before the clock was set back delay no message."""
    sent = [now + it for it in back_s]
    assert earliest(sent, pace, now) == now
    assert kept(sent, now) == []
    assert earliest([*sent, now], pace, now + 1) <= now + HOUR_S
