"""The pool as the core keeps it from pass to pass.

Door: ``cluster_state``; facts go in there, and a pass tries things out on it.
"""
