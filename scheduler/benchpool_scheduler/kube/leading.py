"""What is raised where somebody who is no longer the leader would write."""

from __future__ import annotations

from benchpool_scheduler.errors import Unavailable


class NotLeading(Unavailable):
    """This process is not the leader, or no longer: it writes nothing, and ends or stands by."""

    default_code = "not-leading"
