"""The stacks of a worker's Python processes: taken on the spot, told as plain data. ``taking``.

Standard library only: in a pod the agent takes them, on one machine the service.
"""
