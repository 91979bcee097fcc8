"""Print one row as JSON (``python -m benchpool_scheduler.simulation.shapes SHAPE NODES``)."""

import gc
import json
import sys

from benchpool_scheduler.simulation.shapes.timing import COLLECTIONS, as_json, run

if __name__ == "__main__":
    gc.set_threshold(*COLLECTIONS)
    shape, nodes = sys.argv[1:]
    print(json.dumps(as_json(run(shape, int(nodes)))))
