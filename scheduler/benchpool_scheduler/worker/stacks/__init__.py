"""Stacks of a worker's Python processes, as plain data. Entry point: ``taking``.

Standard library only: the agent takes them in a pod, the service on one machine.
"""
