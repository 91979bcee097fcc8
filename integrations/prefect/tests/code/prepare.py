"""First step: writes the input of the second step."""

import os
from pathlib import Path

(Path(os.environ["BENCHPOOL_OUTPUT_DIR"]) / "data").write_text("prepared")
