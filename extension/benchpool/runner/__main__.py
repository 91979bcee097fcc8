"""``python -m benchpool.runner``."""

import sys

# The job's folder is the user's: a file `random.py` there must not take the place of Python's.
if sys.path and not sys.flags.safe_path:
    del sys.path[0]

from benchpool.runner.command import main

if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
