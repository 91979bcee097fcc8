"""The operations on shells inside running workers; for the owner of the job alone."""

from __future__ import annotations

from benchpool_scheduler.contract.operation import Given, given, operation
from benchpool_scheduler.contract.shells import (
    OPENS_S,
    WAIT_S,
    Shell,
    ShellInput,
    ShellOpening,
    ShellOutput,
    ShellQuery,
)


class ShellOperations:
    """A shell inside a running worker of one's own job."""

    @operation(
        "POST",
        "jobs/{job}/shell",
        Shell,
        body=ShellOpening,
        statuses={201: "It is open."},
        takes_s=OPENS_S + 10,
    )
    def open_shell(self, id_: str, opening: ShellOpening) -> Given:
        """Open a shell inside a running worker.

        It runs as the worker's account, with its variables, folders and GPUs, and ends with it. For
        the owner of the job alone, whoever else may see the job.
        """
        return given(opening, job=id_)

    @operation(
        "POST",
        "jobs/{job}/shell/input",
        ShellOutput,
        body=ShellInput,
        changes=False,
    )
    def type_into_shell(self, id_: str, typed: ShellInput) -> Given:
        """Type into a shell, say that its terminal has another size, or hang up.

        The answer is empty of output and says whether the shell has ended.
        """
        return given(typed, job=id_)

    @operation(
        "GET",
        "jobs/{job}/shell",
        ShellOutput,
        query=ShellQuery,
        takes_s=WAIT_S + 10,
    )
    def shell_output(self, id_: str, *, shell: str, offset: int = 0) -> Given:
        """Read what a shell prints, waiting for it for a while.

        Whoever does not ask for a minute is taken to be gone, and the shell ends.
        """
        return given(query={"shell": shell, "offset": offset}, job=id_)
