"""What the process gives to every part: time, ids, interpreter settings, shielded commands.

Doors: ``clock.Clock``, ``identifiers.new_job_id``, ``shielded.shielded``.
"""
