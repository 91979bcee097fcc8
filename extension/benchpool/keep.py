"""Values of a job that are returned to its submitter. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchpool_scheduler.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Keep:
    """Values that a job's cells store.

    Attributes:
        names: Names in the order of their definition; None for those that the selection defines
            or changes, up to the size limit.
        pickle: Values without a safe format are pickled.
        returns: The value of the last expression is the job's result, as for a function.
    """

    names: tuple[str, ...] | None = None
    pickle: bool = False
    returns: bool = False

    @classmethod
    def asked(cls, names: Sequence[str] | None, pickle: bool) -> Keep:
        """Return the choice of a user.

        Raises:
            InvalidInput: An entry is not a valid name.
        """
        for name in names or ():
            if not name.isidentifier():
                raise InvalidInput(f"keep: {name!r} is not a valid name.", field="keep")
        return cls(None if names is None else tuple(names), pickle)

    def of(self, left: tuple[str, ...]) -> dict[str, object]:
        """Return the instructions for the runner; ``left`` replaces names that are None.

        >>> Keep().of(("a",))
        {'names': ['a'], 'asked': False, 'pickle': False, 'returns': False}
        """
        names = left if self.names is None else self.names
        asked = self.names is not None
        how = {"asked": asked, "pickle": self.pickle, "returns": self.returns}
        return {"names": list(names), **how}
