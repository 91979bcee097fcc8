"""Cells wait while the bench below this server is parked, until its GPU is back.

``parked_watch`` knows how the bench stands; ``held_cells`` keeps what the page sends meanwhile.
"""
