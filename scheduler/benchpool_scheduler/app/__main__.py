"""``python -m benchpool_scheduler.app``."""

from benchpool_scheduler.app.process import main

main()
