"""Detection of hanging jobs, and the action then. The functions are pure.

Theory of operation
-------------------
There are four signs of life: progress or values reported by a worker, log output, processor time,
and kernels on a GPU. The newest of each is known, for all workers together (``Signs``). A job hangs
when the newest sign of all is older than the rule allows. An unmeasured sign counts as absent.
Without measured processor time nothing is decided, since a program may compute silently.

A busy loop counts as alive: an NCCL collective that waits for a lost rank keeps processors and GPUs
busy. A gloo collective sleeps, and is detected. Stack traces cannot distinguish a collective that
never returns from many in a row: both show the same line at every sample.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchpool_scheduler.contract.spec import IfHanging

USUAL_S = 1800.0
"""Default silence that counts as a hang for jobs that request detection, in seconds."""

LEAST_S, MOST_S = 10.0, 7 * 86_400.0
"""Bounds of the configurable silence, in seconds."""

QUIET_CORES = 0.05
"""Processor cores up to which all workers together count as quiet.

Background threads of libraries wake now and then.
"""


@dataclass(frozen=True, slots=True)
class HangRule:
    """Hang detection of a site.

    Attributes:
        after_s: Silence that counts as a hang, in seconds. None means only jobs that request it.
        act: Action for jobs that do not choose one.
    """

    after_s: float | None = None
    act: IfHanging = IfHanging.TELL

    def of_job(self, asked: IfHanging | None) -> HangRule:
        """Return the rule for a job with this choice.

        >>> HangRule().of_job(IfHanging.REQUEUE)
        HangRule(after_s=1800.0, act=<IfHanging.REQUEUE: 'requeue'>)
        >>> HangRule(600.0).of_job(None)
        HangRule(after_s=600.0, act=<IfHanging.TELL: 'tell'>)
        >>> HangRule(600.0).of_job(IfHanging.NOTHING).after_s
        """
        act = self.act if asked is None else asked
        if act is IfHanging.NOTHING:
            return HangRule(None, act)
        return HangRule(
            USUAL_S if asked is not None and self.after_s is None else self.after_s, act
        )


@dataclass(frozen=True, slots=True)
class Signs:
    """Newest signs of life of a running attempt, in epoch seconds. None means no sign.

    Attributes:
        watched: Start of the observation. Earlier silence does not count.
        reported: A worker reported progress or values.
        wrote: A worker wrote to its log.
        computed: The workers used more processor time than ``QUIET_CORES``. None if unmeasured.
        gpu: A kernel ran on one of its GPUs.
    """

    watched: float
    reported: float | None = None
    wrote: float | None = None
    computed: float | None = None
    gpu: float | None = None

    @property
    def newest(self) -> float | None:
        """Return the time of the newest sign of life, or None if it cannot be known.

        >>> Signs(100.0, reported=50.0, wrote=160.0, computed=120.0).newest
        160.0
        >>> Signs(100.0, wrote=160.0).newest
        """
        if self.computed is None:
            return None
        seen = (self.watched, self.reported, self.wrote, self.computed, self.gpu)
        return max(it for it in seen if it is not None)


def silent_since(signs: Signs, rule: HangRule, now: float) -> float | None:
    """Return since when a job hangs, or None if it does not or it cannot be known.

    >>> signs = Signs(100.0, computed=100.0)
    >>> silent_since(signs, HangRule(60.0), 159.0), silent_since(signs, HangRule(60.0), 160.0)
    (None, 100.0)
    """
    newest = signs.newest
    if rule.after_s is None or newest is None or now - newest < rule.after_s:
        return None
    return newest
