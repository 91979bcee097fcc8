"""Start of the worker's command, with exactly its own environment."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import signal
from collections.abc import Callable, Iterator, Sequence

from .. import machine_faults
from . import containment, privacy, system_calls
from .cgroups import Group


class StartFailed(Exception):
    """The command could not be started; ``code`` follows the shell."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.text = text
        self.code = code


class Account:
    """A system account: the user's name and IDs; the groups follow from them."""

    __slots__ = ("gid", "name", "uid")

    def __init__(self, name: str, uid: int, gid: int) -> None:
        self.name = name
        self.uid = uid
        self.gid = gid

    @contextlib.contextmanager
    def become(self) -> Iterator[None]:
        """Use this account for file access inside the context."""
        groups = os.getgroups()
        os.initgroups(self.name, self.gid)
        os.setegid(self.gid)
        os.seteuid(self.uid)
        try:
            yield
        finally:
            os.seteuid(0)
            os.setegid(0)
            os.setgroups(groups)

    def drop_to(self) -> None:
        """Become this account permanently: groups, then group, then user."""
        os.initgroups(self.name, self.gid)
        os.setresgid(self.gid, self.gid, self.gid)
        os.setresuid(self.uid, self.uid, self.uid)


def find_account(name: str | None) -> Account | None:
    """Return the account to become; None if it is the current one or no account is named.

    Raises:
        StartFailed: There is no such account, or this process may not become it.
    """
    if name is None:
        return None
    import pwd  # imported on demand: most installations never need it

    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise StartFailed(f"this machine has no account {name!r}", 126) from None
    if os.geteuid() != 0:
        if entry.pw_uid == os.geteuid():
            return None
        own = f"account number {os.geteuid()}"
        raise StartFailed(
            f"the service runs as {own} and may not run jobs as {name!r}; start it as root, or "
            "run all jobs under its own account",
            126,
        )
    return Account(name, entry.pw_uid, entry.pw_gid)


class Confinement:
    """Environment in which a command is confined.

    Attributes:
        group: Its cgroups. ``account``: account that it runs as; None for the current one.
        private: Folder for a private ``/tmp``, or None for the machine's. Paths in ``kept`` stay
            reachable below it.
        privileges: It may gain more rights than its account has, by a setuid program.
    """

    __slots__ = ("account", "group", "kept", "private", "privileges")

    def __init__(
        self,
        group: Group | None,
        account: Account | None,
        private: str | None = None,
        kept: Sequence[str] = (),
        privileges: bool = True,
    ) -> None:
        self.group = group
        self.account = account
        self.private = private
        self.kept = kept
        self.privileges = privileges

    def enter(self, become: Callable[[], None] | None = None) -> None:
        """Confine the calling process permanently; the cgroups are joined before that.

        Args:
            become: Changes the account; None changes it here.

        Raises OSError.
        """
        if self.private is not None:
            owner = None if self.account is None else self.account.become
            privacy.enter(self.private, self.kept, owner)
        if become is not None:
            become()
        elif self.account is not None:
            self.account.drop_to()
        if not self.privileges:
            system_calls.prctl(system_calls.PR_SET_NO_NEW_PRIVS, 1)


class StartPlace:
    """Variables, working folder and confinement of a command.

    ``reach`` is a folder of the state folder that the command must be able to use.
    """

    __slots__ = ("confinement", "cwd", "env", "reach")

    def __init__(self, env: dict[str, str], cwd: str, confinement: Confinement, reach: str) -> None:
        self.env = env
        self.cwd = cwd
        self.confinement = confinement
        self.reach = reach


def spawn(argv: list[str], place: StartPlace, output: int) -> int:
    """Start the command in its own session and return its pid.

    Standard input is empty, both outputs go to the descriptor ``output``, and every other
    descriptor is closed. Signals have their defaults, no core is dumped, and new files are private
    to the owner.

    The command ends with the supervisor. Otherwise its exit code would be unknown, and a job that
    had finished would run again.

    Raises:
        StartFailed: A folder or the command cannot be used.
        OSError: A fault of the machine.
    """
    failure_read, failure_write = os.pipe2(os.O_CLOEXEC)
    supervisor = os.getpid()
    pid = os.fork()
    if pid == 0:
        stage = "prepare"
        try:
            os.setsid()
            _isolate(output, failure_write, place.confinement.group)
            place.confinement.enter()
            containment.end_with(supervisor)
            stage = "state"
            os.listdir(place.reach)
            stage = "folder"
            os.chdir(place.cwd)
            stage = "command"
            _execute(argv, place.env)
        except BaseException as error:
            number = error.errno if isinstance(error, OSError) and error.errno else 0
            _report(failure_write, f"{stage} {number}".encode())
        finally:
            os._exit(127)
    os.close(failure_write)
    failure = os.read(failure_read, 100).decode()
    os.close(failure_read)
    if failure:
        os.waitpid(pid, 0)
        where, reason = failure.split()
        if int(reason) in machine_faults.FAULTS:
            raise OSError(int(reason), os.strerror(int(reason)))
        raise _explain(where, int(reason), argv[0], place.reach if where == "state" else place.cwd)
    return pid


def _report(failure: int, text: bytes) -> None:
    """Report the error; the descriptor has moved to 3 if the preparation had come that far."""
    for descriptor in (failure, 3):
        try:
            os.write(descriptor, text)
        except OSError:
            continue
        return


def _execute(argv: list[str], env: dict[str, str]) -> None:
    """Become the command, looked up as a shell does.

    ``os.execvpe`` does the same, but imports a module that the new account may not be allowed to
    read.
    """
    denied: OSError = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    folders = [""] if "/" in argv[0] else env.get("PATH", os.defpath).split(":")
    for folder in folders:
        try:
            os.execve(os.path.join(folder, argv[0]), argv, env)  # noqa: S606
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError as error:
            denied = error
    raise denied


def _isolate(output: int, failure: int, group: Group | None) -> None:
    if group is not None:
        group.join()
    null = os.open("/dev/null", os.O_RDONLY)
    # High numbers first, so that no target below overwrites a source.
    output, failure, null = (_above(fd) for fd in (output, failure, null))
    for target, source in ((0, null), (1, output), (2, output)):
        os.dup2(source, target)
    os.dup2(failure, 3, inheritable=False)
    os.closerange(4, 1 << 20)
    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    _offer_to_oom_killer()
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if int(number) < signal.SIGRTMIN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _above(descriptor: int) -> int:
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD, 10)


def _offer_to_oom_killer() -> None:
    """Let the kernel kill the job before the supervisor and the scheduler when memory runs out."""
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("500")
    except OSError:
        pass


def _explain(stage: str, number: int, command: str, folder: str) -> StartFailed:
    why = os.strerror(number) if number else "not possible"
    if stage == "state":
        return StartFailed(
            f"the job's account cannot reach {folder}: {why}; give other accounts access through "
            "the state folder (chmod o+x) and all folders above it",
            126,
        )
    if stage == "folder":
        return StartFailed(f"the working folder {folder} cannot be used: {why}", 126)
    if stage == "command":
        code = 127 if number == 2 else 126
        return StartFailed(f"the command {command!r} cannot be started: {why}", code)
    return StartFailed(f"the process could not be prepared: {why}", 126)
