"""The first step: leaves what the second one reads."""

import os
from pathlib import Path

(Path(os.environ["BENCHPOOL_OUTPUT_DIR"]) / "data").write_text("prepared")
