"""Services of the process for all parts: time, IDs, interpreter settings, shielded commands.

Entry points: ``clock.Clock``, ``identifiers.new_job_id``, ``shielded.shielded``.
"""
