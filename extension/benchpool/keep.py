"""Which values of a job come back to its sender. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchpool_scheduler.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Keep:
    """Which values a job's cells leave behind.

    Attributes:
        names: In the order in which they are defined; None for those that the selection defines
            or changes, while there is room for them.
        pickle: What has no safe format is pickled.
        returns: The value of the last expression is the job's result, as of a function.
    """

    names: tuple[str, ...] | None = None
    pickle: bool = False
    returns: bool = False

    @classmethod
    def asked(cls, names: Sequence[str] | None, pickle: bool) -> Keep:
        """Return what a user asked for. Errors: InvalidInput for what is no name."""
        for name in names or ():
            if not name.isidentifier():
                raise InvalidInput(f"keep: {name!r} is no name of a value.", field="keep")
        return cls(None if names is None else tuple(names), pickle)

    def of(self, left: tuple[str, ...]) -> dict[str, object]:
        """Return what the runner is told; ``left`` are the names for None.

        >>> Keep().of(("a",))
        {'names': ['a'], 'asked': False, 'pickle': False, 'returns': False}
        """
        names = left if self.names is None else self.names
        asked = self.names is not None
        how = {"asked": asked, "pickle": self.pickle, "returns": self.returns}
        return {"names": list(names), **how}
