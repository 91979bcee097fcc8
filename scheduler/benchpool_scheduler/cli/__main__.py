"""``python -m benchpool_scheduler.cli`` is ``benchpool``."""

from benchpool_scheduler.cli import main

main()
