"""Cells wait while the bench of this server is parked, until its GPU is back.

``parked_watch`` tracks the state of the bench. ``held_cells`` holds the page's messages meanwhile.
"""
