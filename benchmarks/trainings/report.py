"""Reports of a training to the benchmark that pauses it: losses, and weights at the end."""

import hashlib
import os
import platform
import sys
from pathlib import Path

PAUSE_AFTER = os.environ.get("TRAINING_PAUSE_AFTER")
"""Step during whose end the pool requests a pause."""
EPOCHS = int(os.environ.get("TRAINING_EPOCHS", "10"))
DEVICE = os.environ.get("TRAINING_DEVICE", "cpu")
"""Device of the loop: ``cpu`` or ``cuda``."""
LIBRARIES = ("torch", "transformers", "lightning", "keras")


def loss(step: int, value: float) -> None:
    """Print the exact loss of a step; steps are counted from 1."""
    print("loss", step, float(value).hex(), flush=True)
    if str(step) == PAUSE_AFTER:
        Path(os.environ["BENCHPOOL_NOTICE_FILE"]).write_text("{}")


def weights(parameters) -> None:  # type: ignore[no-untyped-def]
    """Print the hash of the weights, and the versions of Python and of the imported libraries."""
    digest = hashlib.sha256()
    for each in parameters:
        values = each.detach().flatten().tolist() if hasattr(each, "detach") else each.ravel()
        digest.update(" ".join(float(value).hex() for value in values).encode())
    print("weights", digest.hexdigest(), flush=True)
    used = [f"{name} {sys.modules[name].__version__}" for name in LIBRARIES if name in sys.modules]
    print("versions", ", ".join([*used, f"Python {platform.python_version()}"]), flush=True)
