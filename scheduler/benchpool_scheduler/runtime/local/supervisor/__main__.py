"""Run the supervisor from its folder, isolated from site packages and the scheduler's code.

Executed as a folder there is no parent package; the folder's own name is made importable, last on
the path so that it hides nothing of the standard library.
"""

import importlib
import os
import sys

if __name__ == "__main__":
    _here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _here]
    sys.path.append(os.path.dirname(_here))
    importlib.import_module(os.path.basename(_here) + ".run").main(sys.argv[1:])
