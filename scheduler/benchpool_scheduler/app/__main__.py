"""``python -m benchpool_scheduler.app``."""

from benchpool_scheduler.app import main

main()
