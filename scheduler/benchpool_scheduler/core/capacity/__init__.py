"""What is free where, and where the workers of a job go (R1, R10, R12, R13).

Door: ``free_capacity`` holds what is free on all nodes, ``placement.find`` chooses nodes.
"""
