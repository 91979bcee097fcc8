"""Free capacity and placement of the workers of a job (R1, R10, R12, R13).

Entry points: ``free_capacity`` for the free capacity of all nodes, ``placement.find`` for the
choice of nodes.
"""
