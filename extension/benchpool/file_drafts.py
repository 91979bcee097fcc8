"""Drafts of jobs that run a script or a notebook of this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchpool import drafts, import_problems, keywords, notebooks
from benchpool.drafts import Draft, JobOptions
from benchpool.keep import Keep
from benchpool.kernel_environment import kernel_environment
from benchpool_scheduler.client import snapshot
from benchpool_scheduler.contract.options import fields_of
from benchpool_scheduler.errors import InvalidInput


def draft_of(
    what: Path,
    args: tuple[object, ...],
    options: Mapping[str, Any],
    key: str,
    keep: Keep | None = None,
    interpreter: str = sys.executable,
) -> Draft:
    """Return the draft of a script or notebook. Raises the errors of ``submit``."""
    file = what.absolute()
    if file.suffix == ".ipynb":
        options = keywords.with_parameters(dict(options))
    for name in options.keys() - keywords.NAMES:
        raise TypeError(f"submit() got an unexpected keyword argument {name!r}")
    chosen = replace(JobOptions.of(fields_of(options), key), keep=keep or Keep())
    if not file.is_file():
        raise InvalidInput(f"There is no file {what} in {Path.cwd()}.", field="path")
    if file.suffix == ".ipynb":
        return _notebook(file, args, chosen, interpreter)
    if keep not in (None, Keep()):
        raise InvalidInput(
            f"{file.name} is a script, which returns no values. Write files to the folder "
            "BENCHPOOL_OUTPUT_DIR and read job.files.",
            field="keep",
        )
    if chosen.parameters:
        raise InvalidInput(
            f"{file.name} is a script, and parameters are for notebooks. Pass arguments after "
            "its name.",
            field="parameters",
        )
    return _script(file, [str(each) for each in args], chosen, interpreter)


def _notebook(file: Path, args: tuple[Any, ...], options: JobOptions, interpreter: str) -> Draft:
    if args:
        raise InvalidInput(
            f"{file.name} is a notebook and takes no arguments. Pass parameters by name, for "
            "example lr=0.1.",
            field="args",
        )
    here = kernel_environment(os.environ)
    cells, metadata = notebooks.read_with_metadata(file)
    draft = drafts.of_cells(
        cells,
        options,
        kind="python",
        folder=file.parent,
        interpreter=interpreter,
        path=file.name,
        whole=True,
        here=here,
        metadata=metadata,
    )
    return import_problems.checked(draft, None, here)


def _script(file: Path, args: list[str], options: JobOptions, interpreter: str) -> Draft:
    here = Path.cwd()
    folder = here if file.is_relative_to(here) else file.parent
    inside = file.relative_to(folder).as_posix()
    files = snapshot.take(folder, must=[inside])
    around = kernel_environment(os.environ)
    draft = drafts.of_script(
        file,
        args,
        options,
        kind="python",
        interpreter=interpreter,
        folder=folder,
        path=inside,
        files=files,
        here=around,
    )
    return import_problems.checked(draft, file, around)
