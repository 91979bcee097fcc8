"""What can happen to a job, as changes in a unit of work, and in which words it is told.

Door: the functions in ``transitions``. Nothing here waits or acts.
"""
