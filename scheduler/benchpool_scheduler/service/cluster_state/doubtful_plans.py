"""Plans that would break a rule: the doubtful part is dropped and the pool is saved as a case.

Such a plan is a fault of the core, whose next pass over the same pool would return the same. The
service carries out the rest of the plan, and the case file reproduces the fault.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from pathlib import Path

from benchpool_scheduler.core.cluster.sound_plans import SoundPlan, without_doubt
from benchpool_scheduler.core.model import Plan, Snapshot
from benchpool_scheduler.phrases import count
from benchpool_scheduler.simulation.written import as_case
from benchpool_scheduler.store import whole_files

log = logging.getLogger(__name__)

FOLDER = "doubtful-plans"
MOST_FILES = 10
"""Maximum number of saved pools. One pool may hold many thousand jobs."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A plan that may be carried out.

    Attributes:
        problem: Report to administrators, or None if the plan is unchanged.
    """

    plan: Plan
    problem: str | None = None


class DoubtfulPlans:
    """Checks plans before they are carried out.

    Args:
        folder: Folder for saved pools.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def judge(self, facts: Snapshot | None, plan: Plan) -> Judged:
        """Return the part of a plan that may be carried out.

        Args:
            facts: The pool for which the plan was made. None if unknown: the plan is not checked.
        """
        if facts is None:
            return Judged(plan)
        sound = without_doubt(facts, plan)
        if not sound.broken:
            return Judged(plan)
        problem = self._problem(sound, self._kept(facts))
        log.error("%s", problem)
        return Judged(sound.plan, problem)

    def _problem(self, sound: SoundPlan, file: Path | None) -> str:
        found = f"{sound.broken[0]}"
        if more := len(sound.broken) - 1:
            found += f", and {more} more"
        advice = (
            f"report it with {file}, a case for `benchpool simulate`"
            if file is not None
            else f"{self._folder} already has {MOST_FILES} such cases, or cannot be written"
        )
        return (
            f"The scheduler's last decision would have broken a rule ({found}), so "
            f"{count(len(sound.left_out), 'command')} of it {_was(len(sound.left_out))} not "
            f"carried out. This is a bug in benchpool: {advice}."
        )

    def _kept(self, facts: Snapshot) -> Path | None:
        """Write a pool as a case file. Return the file, or None if it could not be written."""
        text = as_case(facts).encode()
        file = self._folder / f"{hashlib.sha256(text).hexdigest()[:16]}.yaml"
        try:
            if file.exists():
                return file
            if len(list(self._folder.glob("*.yaml"))) >= MOST_FILES:
                return None
            whole_files.write(file, text)
        except OSError:
            log.exception("the case of an invalid plan could not be written to %s", file)
            return None
        return file


def _was(number: int) -> str:
    return "was" if number == 1 else "were"
