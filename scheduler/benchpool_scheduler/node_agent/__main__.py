"""``python -m benchpool_scheduler.node_agent``."""

from benchpool_scheduler.node_agent.run import main

main()
