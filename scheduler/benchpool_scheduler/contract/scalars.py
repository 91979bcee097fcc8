"""Types of names, counts and sizes of the API, with their bounds."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta

# ``$`` alone would allow a final line feed; ``(?!\n)`` has the same meaning in every dialect.
Name = Annotated[str, Meta(min_length=1, max_length=100)]
Identifier = Annotated[str, Meta(pattern=r"^[a-z0-9]{26}$(?!\n)")]
Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")]
GpuCount = Annotated[int, Meta(ge=1, le=1024)]
WorkerCount = Annotated[int, Meta(ge=1, le=4096)]
Priority = Annotated[int, Meta(ge=0, le=1000)]
PRIORITY_HELP = (
    "Priority among the jobs of its project, 0 to 1000. Higher ones start first and may pause "
    "lower ones that are preemptible; other projects are not affected. The owner, leads of the "
    "project and administrators may set it."
)
"""Help on priorities for options, dialogs, pages and documents."""

Seconds = Annotated[int, Meta(ge=1, le=366 * 24 * 3600)]
Instant = Annotated[datetime, Meta(tz=True)]
FilePath = Annotated[str, Meta(min_length=1, max_length=4096)]
Argument = Annotated[str, Meta(max_length=32768)]
Cores = Annotated[float, Meta(ge=0, le=10_000)]
Gib = Annotated[float, Meta(ge=0, le=1_000_000)]
ImageName = Annotated[str, Meta(pattern=r"^[^\s\x00-\x20\x7f]{1,500}$(?!\n)")]
