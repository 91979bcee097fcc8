"""``python -m benchpool.runner``."""

import sys

# The job's folder is the user's: a file `random.py` there must not take the place of Python's.
if sys.path and not sys.flags.safe_path:
    del sys.path[0]

# nbformat brings in jsonschema, which loads this if it can, for a kind of address that notebooks
# do not have. Its grammar takes a second to build: half the time to the job's first line.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

from benchpool.runner.command import main  # noqa: E402

if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
