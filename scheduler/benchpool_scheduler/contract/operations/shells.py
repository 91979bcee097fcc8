"""Operations on shells inside running workers, for the owner of the job only."""

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
    """Shells inside running workers of the caller's own jobs."""

    @operation(
        "POST",
        "jobs/{job}/shell",
        Shell,
        body=ShellOpening,
        statuses={201: "The shell is open."},
        takes_s=OPENS_S + 10,
    )
    def open_shell(self, id_: str, opening: ShellOpening) -> Given:
        """Open a shell inside a running worker.

        It runs as the worker's account, with its variables, folders and GPUs, and ends with the
        worker. Only the owner of the job may open one, even if other users may see the job.
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
        """Type into a shell, change its terminal size, or end it.

        The answer has no output. It states whether the shell has ended.
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
        """Read the output of a shell, waiting a while for new output.

        A shell ends if its client does not read for a minute.
        """
        return given(query={"shell": shell, "offset": offset}, job=id_)
