"""``%%train``: submit a cell, with the earlier cells of this session that it needs, to the pool.

``%%serve`` starts it as a service; see ``serve_magic``.
"""

from __future__ import annotations

import os
import sys
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial, update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from benchpool import failed_inputs
from benchpool.cells.left_out import SERVE, TRAIN
from benchpool.magic_session import MagicSession, OwnSession
from benchpool.magic_words import HelpAsked, MagicParser, parser_of

if TYPE_CHECKING:
    from benchpool.cells import KnownBeside, NotebookCell
    from benchpool.drafts import Draft, JobOptions
    from benchpool.dry_runs import DryRun
    from benchpool.handles import JobHandle
    from benchpool.live_values import LiveValues
    from benchpool.schedule_handles import ScheduleHandle
    from benchpool.services import ServiceHandle
    from benchpool.sweeps import SweepHandle
    from benchpool_scheduler.contract.sweeps import SweepPlan

    Sent: TypeAlias = JobHandle | SweepHandle | ScheduleHandle | DryRun


def register(ipython: Any) -> None:
    """Register the magics in an IPython session. Their dependencies load on first use."""
    failed_inputs.watch(ipython)
    for name, does in ((TRAIN, train), (SERVE, _serve)):
        # With its docstring, which `%%train?` shows.
        magic = update_wrapper(partial(does, ipython), does)
        ipython.register_magic_function(magic, magic_kind="cell", magic_name=name)
        explains = update_wrapper(partial(_explain, name), does)
        ipython.register_magic_function(explains, magic_kind="line", magic_name=name)


def _explain(name: str, line: str) -> None:
    """Print the options of a magic: ``%train --help``. Without a cell nothing is submitted."""
    from benchpool import serve_magic

    parser = {TRAIN: _parser, SERVE: serve_magic.parser}[name]()
    if "--help" in line.split():
        print(parser.help_text())
    else:
        print(
            f"%{name} sends nothing. Write %%{name} in the first line of the cell to send. "
            f"`%{name} --help` lists the options.",
            file=sys.stderr,
        )


def _serve(ipython: Any, line: str, cell: str) -> ServiceHandle | None:
    """Serve a cell at an address of the Hub. ``%serve --help`` lists the options."""
    from benchpool import serve_magic

    return serve_magic.serve(ipython, line, cell)


def train(ipython: Any, line: str, cell: str) -> Sent | None:
    """Submit a cell to the training pool.

    Takes the options of ``benchpool submit``, e.g. ``--gpus 2 --time-limit 3600``, and some of its
    own. ``%train --help`` lists all.
    """
    from benchpool_scheduler.errors import BenchpoolError

    try:
        return send(OwnSession(ipython), line, cell)
    except HelpAsked as asked:
        print(asked)
        return None
    except BenchpoolError as refused:
        print(refused.message, file=sys.stderr)
        return None


def send(session: MagicSession, line: str, cell: str) -> Sent:
    """Submit a cell of a session and return its job, sweep or schedule, or a preview of them.

    Raises:
        HelpAsked: The line has ``--help``.
        BenchpoolError: The job cannot be sent, or a rule of the pool rejects it.
    """
    from benchpool import dry_runs, schedule_handles

    options, names, plan = read_options(line), names_sent(line), read_plan(line)
    times = read_times(line)
    cells, seen = session_of(session, cell)
    with tempfile.TemporaryDirectory(prefix="benchpool-values-") as folder:
        values = own_values(session, names, Path(folder), options.keep.pickle)
        sent = replace(options, values=values)
        draft = draft_of(cells, sent, os.environ, session.interpreter, seen)
        if plan is None:
            send_it = dry_runs.of_draft if is_dry(line) else schedule_handles.send_or_repeat
            return send_it(draft, *times)
        from benchpool import arrays, sweeps

        request = sweeps.request_of(draft, plan, **read_trial_length(line))
        if is_dry(line):
            return dry_runs.of_sweep(request)
        return arrays.begin(draft, request) if plan.array else sweeps.begin(draft, request)


def session_of(session: MagicSession, cell: str) -> tuple[Sequence[NotebookCell], KnownBeside]:
    """Return the cells of a session with the submitted one, and the kernel's answer."""
    cells = failed_inputs.without(cells_of(session.inputs(), cell), session.failed())
    return cells, _seen(session, cells)


def _seen(session: MagicSession, cells: Sequence[NotebookCell]) -> KnownBeside:
    """Return the answer of the session's kernel."""
    from benchpool.cells import KnownBeside, names_of

    history = ["", *[each.source for each in cells if not each.selected]]
    return KnownBeside(session.answer(history, names_of(cells)))


def read_options(line: str) -> JobOptions:
    """Return the options after ``%%train``.

    Raises:
        InvalidInput: A word is unknown, or a number is invalid.

    >>> read_options("--gpus 2 --name 'my job'").name
    'my job'
    """
    from benchpool.drafts import JobOptions
    from benchpool.keep import Keep
    from benchpool_scheduler.contract.options import fields_of, written

    given = _parser().words(line)
    asked = JobOptions.of(fields_of(written(given, os.environ)), key=uuid.uuid4().hex)
    return replace(asked, keep=Keep.asked(given["keep"], given["pickle"]))


def names_sent(line: str) -> list[str]:
    """Return the names after ``--send``, whose values are sent.

    >>> names_sent("--gpus 2 --send X_train --send y_train")
    ['X_train', 'y_train']
    """
    return list(_parser().words(line)["send"] or ())


def own_values(
    session: MagicSession, names: Sequence[str], folder: Path, pickle: bool
) -> LiveValues:
    """Write values of a session into a folder and return them.

    Raises:
        InvalidInput: A value cannot be sent.
    """
    from benchpool.live_values import LiveValues, of_folder

    if not names:
        return LiveValues()
    return of_folder(folder, session.write(names, str(folder), pickle))


SWEEP_OPTIONS: Mapping[str, type] = {
    "trials": int, "method": str, "metric": str, "at_once": int, "stop_early": str,
    "gpu_hours": float, "good_enough": float, "patience": int, "sweep_seed": int,
}  # fmt: skip
"""Options that accompany ``--sweep``, as in ``benchpool submit``."""
TRIAL_LENGTH: Mapping[str, type] = {"trial_hours": float, "trial_steps": int}
"""Options for the expected cost of a sweep or an array, as in ``benchpool submit``."""


def read_plan(line: str) -> SweepPlan | None:
    """Return the sweep or array requested by the words after ``%%train``, or None.

    Raises:
        InvalidInput: A value is invalid, or an option of a sweep is used without a sweep.

    >>> read_plan("--sweep lr=0.1,0.2 --at-once 2").max_concurrent
    2
    >>> read_plan("--array 0-31%4").max_concurrent
    4
    """
    from benchpool_scheduler.client import array_tasks
    from benchpool_scheduler.client.sweep_plans import pair_of, plan_of
    from benchpool_scheduler.errors import InvalidInput

    words = _parser().words(line)
    given = {name: words[name] for name in (*SWEEP_OPTIONS, "goal") if words[name] is not None}
    if words["array"] is not None:
        alone = [*given, *(["sweep"] if words["sweep"] else [])]
        array_tasks.check_alone(alone, "%%train: ")
        return array_tasks.plan_of(words["array"])
    if words["sweep"]:
        return plan_of(dict(map(pair_of, words["sweep"])), **given)
    if given:
        raise InvalidInput(
            f"%%train: --{next(iter(given)).replace('_', '-')} requires --sweep NAME=VALUES.",
            field="sweep",
        )
    return None


def read_times(line: str) -> tuple[str | None, str | None]:
    """Return the times of a schedule after ``%%train`` and their time zone.

    Raises:
        InvalidInput: A time zone without times, or an option that conflicts with a schedule.

    >>> read_times("--every 'night at 2' --zone UTC"), read_times("--gpus 2")
    (('night at 2', 'UTC'), (None, None))
    """
    from benchpool_scheduler.client import schedule_requests

    words = _parser().words(line)
    others = [name for name in ("sweep", "array", "after") if words[name]]
    schedule_requests.check_alone(words["every"], words["zone"], others, where="%%train: ")
    return words["every"], words["zone"]


def read_trial_length(line: str) -> dict[str, Any]:
    """Return the length of a trial after ``%%train``: ``trial_hours`` and ``trial_steps``."""
    words = _parser().words(line)
    return {name: words[name] for name in TRIAL_LENGTH}


def is_dry(line: str) -> bool:
    """Return whether the line has ``--dry-run``.

    >>> is_dry("--gpus 2 --dry-run")
    True
    """
    return bool(_parser().words(line)["dry_run"])


def cells_of(history: Sequence[str], cell: str) -> list[NotebookCell]:
    """Return the session's inputs in the order in which they ran, and the submitted cell, selected.

    The last entry of the history is the submission itself. Earlier submissions ran elsewhere, and
    cells that do not parse never ran. Cells have the numbers that the kernel shows beside them.
    """
    from benchpool.cells import NotebookCell, magics

    found = []
    for number, text in enumerate(history[:-1]):
        read = magics.read(text)
        if text.strip() and not read.sends and (read.tree is not None or read.opaque):
            found.append(NotebookCell(f"in-{number}", text, number=number))
    count = max(1, len(history) - 1)
    return [*found, NotebookCell("sent", below_the_magic(cell), selected=True, number=count)]


def below_the_magic(cell: str) -> str:
    """Return a cell with a comment in place of the magic's line, so that lines keep their numbers.

    The options of that line may contain secrets, so they are not sent.

    >>> below_the_magic("fit(model)")
    '# %%train\\nfit(model)'
    """
    return cell if cell.startswith("%%") else f"# %%{TRAIN}\n{cell}"


def draft_of(
    cells: Sequence[NotebookCell],
    options: JobOptions,
    environ: Any,
    interpreter: str,
    seen: KnownBeside | None = None,
) -> Draft:
    """Return a draft of the job, in this folder and with the session's Python."""
    from benchpool import drafts, import_problems
    from benchpool.kernel_environment import kernel_environment

    session = environ.get("JPY_SESSION_NAME", "")
    path = Path(session).name if session.endswith(".ipynb") else None
    here = kernel_environment(environ)
    draft = drafts.of_cells(
        cells,
        options,
        kind="magic",
        folder=Path.cwd(),
        interpreter=interpreter,
        path=path,
        here=here,
        seen=seen or drafts.NOTHING_SEEN,
    )
    return import_problems.checked(draft, None, here)


def _parser() -> MagicParser:
    from benchpool_scheduler.contract.options import OPTIONS

    parser = parser_of(TRAIN, OPTIONS)
    parser.add_argument(
        "--keep", action="append", metavar="NAME", help="Name of a value to return."
    )
    parser.add_argument("--dry-run", action="store_true", help="Show the preview and send nothing.")
    repeats = parser.add_argument_group("of a schedule, see `benchpool submit --help`")
    repeats.add_argument("--every", metavar="WHEN")
    repeats.add_argument("--zone", metavar="ZONE")
    sweeps = parser.add_argument_group("of a sweep or an array, see `benchpool submit --help`")
    sweeps.add_argument("--sweep", action="append", metavar="NAME=VALUES")
    sweeps.add_argument("--array", metavar="TASKS[%N]")
    for name, type_ in {**SWEEP_OPTIONS, **TRIAL_LENGTH}.items():
        sweeps.add_argument(f"--{name.replace('_', '-')}", dest=name, type=type_)
    for goal in ("minimize", "maximize"):
        sweeps.add_argument(f"--{goal}", dest="goal", action="store_const", const=goal)
    return parser
