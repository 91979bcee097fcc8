"""Whether a running job hangs, and what is done then: pure, over what was measured.

Theory of operation
-------------------
Four things are signs of life: progress or values that a worker reports, output in a log, processor
time, and kernels on a GPU. Of each the newest is known, of all workers together (``Signs``). A job
hangs when the newest of them all is older than the rule has it. What was not measured is no sign;
but where processor time was not measured nothing is decided: a program may compute in silence.

What spins is alive here: a collective of NCCL that waits for a lost rank keeps processors and GPUs
busy. One of gloo sleeps, and is found. Stacks cannot tell a collective that never returns from many
that follow each other: both stand in the same line whenever somebody looks.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchpool_scheduler.contract.spec import IfHanging

USUAL_S = 1800.0
"""Silence that is a hang where a job asks for it and the site has no rule, seconds."""

LEAST_S, MOST_S = 10.0, 7 * 86_400.0
"""Bounds of the silence that a site may choose, seconds."""

QUIET_CORES = 0.05
"""All workers together that use no more of one processor core than this are quiet: what libraries
start in the background wakes now and then."""


@dataclass(frozen=True, slots=True)
class HangRule:
    """What a site says of hangs.

    Attributes:
        after_s: Silence that is a hang, seconds; None looks at no job that does not ask for it.
        act: What is done with a job that does not say it.
    """

    after_s: float | None = None
    act: IfHanging = IfHanging.TELL

    def of_job(self, asked: IfHanging | None) -> HangRule:
        """Return what holds for a job that asks for this.

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
    """The newest signs of life of a running attempt, epoch seconds; None for none.

    Attributes:
        watched: Since when it is watched: nothing before counts as silence.
        reported: A worker reported progress or values. ``wrote``: one wrote into its log.
        computed: They used more processor time than ``QUIET_CORES``; None where none of them is
            measured. ``gpu``: a kernel ran on one of its GPUs.
    """

    watched: float
    reported: float | None = None
    wrote: float | None = None
    computed: float | None = None
    gpu: float | None = None

    @property
    def newest(self) -> float | None:
        """When it last showed a sign of life; None where that cannot be known.

        >>> Signs(100.0, reported=50.0, wrote=160.0, computed=120.0).newest
        160.0
        >>> Signs(100.0, wrote=160.0).newest
        """
        if self.computed is None:
            return None
        seen = (self.watched, self.reported, self.wrote, self.computed, self.gpu)
        return max(it for it in seen if it is not None)


def silent_since(signs: Signs, rule: HangRule, now: float) -> float | None:
    """Return since when a job hangs; None while it does not, or where that cannot be known.

    >>> signs = Signs(100.0, computed=100.0)
    >>> silent_since(signs, HangRule(60.0), 159.0), silent_since(signs, HangRule(60.0), 160.0)
    (None, 100.0)
    """
    newest = signs.newest
    if rule.after_s is None or newest is None or now - newest < rule.after_s:
        return None
    return newest
