"""Command ``python -m benchpool.runner``."""

import sys

# The job's folder is the user's: a file `random.py` there must not replace Python's module.
if sys.path and not sys.flags.safe_path:
    del sys.path[0]

# nbformat imports jsonschema, which loads this module if available, for a kind of address that
# notebooks do not have. Its grammar takes a second to build: half the time to the first log line.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

from benchpool.runner.command import main  # noqa: E402

if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
