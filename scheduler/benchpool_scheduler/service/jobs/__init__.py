"""What users do with jobs: upload, preview, submit, pause, resume, cancel, change.

Doors: ``admission.Intake``, ``commands.Commands``, ``previews.Previews``, ``uploads.Objects``.
"""
